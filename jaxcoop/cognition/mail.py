"""1.2 and 4: messages, mailboxes and memories.

Axes: A agents, M messages that are kept.  Numbers are sections of docs/coop2.md.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from jaxcoop.cognition.records import MESSAGES, Rows, no_rows
from jaxcoop.cognition.state import MEMORY, Mail
from jaxcoop.core import bits

GOT_ANY, GOT_REPAIR, GOT_PEER = 1, 2, 4
"""What a mailbox held, as bits."""


def no_mail(agents: int, messages: int) -> Mail:
    """Nobody has said anything."""
    none = jnp.zeros((agents,), jnp.bool_)
    sets = jnp.zeros((agents, bits.num_words(messages)), jnp.uint32)
    return Mail(
        unread=jnp.zeros((agents,), jnp.int32),
        heard=none,
        has_repair=none,
        latest=jnp.full((agents,), -1, jnp.int32),
        directive=jnp.full((agents,), -1, jnp.int32),
        answers=jnp.zeros((agents, bits.num_words(agents)), jnp.uint32),
        log=no_rows(messages, len(MESSAGES)),
        recipients=jnp.zeros((messages, bits.num_words(agents)), jnp.uint32),
        inbox=sets,
        shown=sets,
        history=sets,
        memory=jnp.full((agents, MEMORY if messages else 0, 4), -1, jnp.int32),
    )


def remember(mail: Mail, who: Bool[Array, " A"], *event: Array | int) -> Mail:
    """6.5: the last ten events; `event`: kind, sender or plan, message, env_step."""
    if not mail.memory.shape[1]:
        return mail
    columns = [jnp.broadcast_to(jnp.asarray(x, jnp.int32), who.shape) for x in event]
    row = jnp.stack(columns, -1)[:, None]
    pushed = jnp.concatenate([mail.memory[:, 1:], row], 1)
    return mail.replace(memory=jnp.where(who[:, None, None], pushed, mail.memory))


def put_in(
    mail: Mail,
    on: Bool[Array, ""],
    sender: Int[Array, ""],
    to: Bool[Array, " A"],
    peer: np.ndarray,
    row: Int[Array, " W"],
    *,
    is_repair: Bool[Array, ""] | bool,
    is_answer: Bool[Array, ""],
) -> Mail:
    """One message in the mailboxes of `to`; `row`: its record.  Nothing unless `on`."""
    to = to & on
    answers = mail.answers
    word = jnp.arange(answers.shape[1], dtype=jnp.int32) == sender // bits.WORD
    bit = jnp.where(word, jnp.uint32(1) << (sender % bits.WORD).astype(jnp.uint32), jnp.uint32(0))
    mail = mail.replace(
        unread=mail.unread + to,
        heard=mail.heard | (to & (sender == peer)),
        latest=jnp.where(to & (sender == peer), mail.log.count, mail.latest),
        has_repair=mail.has_repair | (to & is_repair),
        answers=jnp.where((to & is_answer)[:, None], answers | bit, answers),
    )
    return _log(mail, on, to, row)


def _log(mail: Mail, on: Bool[Array, ""], to: Bool[Array, " A"], row: Int[Array, " W"]) -> Mail:
    """Keep the message; the oldest one makes room for it."""
    kept, count = mail.log.rows.shape[0], mail.log.count
    log = Rows(rows=mail.log.rows, count=count + on)
    if not kept:
        return mail.replace(log=log)
    place = count % kept
    here = (jnp.arange(kept) == place) & on
    member = bits.pack(jnp.arange(kept) == place)  # as a set of messages
    fresh = jnp.where(on, member, jnp.uint32(0))
    return mail.replace(
        log=log.replace(rows=jnp.where(here[:, None], row, mail.log.rows)),
        recipients=jnp.where(here[:, None], bits.pack(to), mail.recipients),
        inbox=jnp.where(to[:, None], mail.inbox | fresh, mail.inbox & ~fresh),
        shown=mail.shown & ~fresh,
        history=mail.history & ~fresh,
    )


def held(mail: Mail) -> Int[Array, " A"]:
    """What each mailbox holds, as bits."""
    return ((mail.unread > 0) * GOT_ANY + mail.has_repair * GOT_REPAIR + mail.heard * GOT_PEER).astype(jnp.int32)


def emptied(mail: Mail, who: Bool[Array, " A"], proposals: Bool[Array, " A"]) -> Mail:
    """The mailboxes of `who` emptied; what they held is shown, and with `proposals` goes into the history."""
    rows = who[:, None]
    return mail.replace(
        unread=jnp.where(who, 0, mail.unread),
        heard=mail.heard & ~who,
        directive=jnp.where(who & mail.heard, mail.latest, mail.directive),
        has_repair=mail.has_repair & ~who,
        answers=jnp.where(rows, jnp.uint32(0), mail.answers),
        inbox=jnp.where(rows, jnp.uint32(0), mail.inbox),
        shown=jnp.where(rows, mail.inbox, mail.shown),
        history=jnp.where(rows & proposals[:, None], mail.history | mail.inbox, mail.history),
    )
