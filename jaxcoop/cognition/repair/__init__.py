"""COOP²-Repair: predict from the committed plans which constraints will fail, and let those concerned replan."""
