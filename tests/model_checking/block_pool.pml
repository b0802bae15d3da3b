/* The block pool, the prefix index, namespaces and fences as a closed system, small enough to be searched whole.
 *
 * Four usable blocks, three requests of two tenants, two jobs in flight or complete and not fenced. A request wants
 * two blocks: the first holds what every prompt of its namespace begins with, the second differs by a variant drawn when it is
 * accepted. Requests 0 and 2 share a tenant and, when the draw says so, a namespace.
 *
 * The rules are scheduler/README.md's, in the same words: who may take blocks, what is evicted for whom, when a released block
 * may be handed out, what a match may return. The environment is free: it accepts, cancels and flushes at any moment, and the
 * device completes and fences as late as it likes. What is left out: lengths, token budgets, priorities, LRU order (any cached
 * block of the chosen tenant may go: more than the code does, so what holds here holds for every order).
 *
 * Asserted in every reachable state: a job reads only bytes of its own namespace and position; a block named by a job that is
 * not fenced is not handed out; every block is handed out scrubbed; states, holders and counts agree; an index entry describes
 * bytes that are there; borrowing stays inside common (sum of excess <= U); E1, E2, E3, E4; when nothing is in flight the
 * oldest running request can move.
 *
 * Each FAULT_ macro breaks one rule; check.py shows that the search then finds a violation.
 */

#define BLOCKS 4
#define REQUESTS 3
#define TENANTS 2
#define JOBS 2 /* submitted and not fenced */
#define NEED 2 /* blocks of a request */

#define RESERVE 1
#define COMMON 2

/* States of a block. */
#define FREE 0
#define OWNED 1
#define SEALED 2
#define CACHED 3
#define RETIRING 4

/* States of a job's place in the ring. */
#define NONE 0
#define SUBMITTED 1
#define EXECUTED 2
#define COMPLETE 3

#define NOBODY 3 /* a job whose request was cancelled or preempted */
#define NO_BLOCK 4
#define DIRTY 15 /* bytes of a free block: anything */

typedef Block {
  byte state;
  byte after;   /* of a retiring block: FREE or CACHED */
  byte tenant;
  byte holders;
  byte entry;   /* content that the index says it holds; 0: not indexed */
  byte bytes;   /* content that is in memory; 0: zeros */
  byte named;   /* bit j: the job at place j names it */
}

typedef Request {
  bit running;
  bit stale;    /* its keys are of an older epoch */
  byte space;   /* namespace */
  byte variant; /* of its second block */
  byte age;     /* among the running, 0 is the oldest */
  byte held;    /* blocks in its table */
  byte done;    /* of these, computed by completed jobs */
  byte table[NEED];
}

typedef Job {
  byte state;
  byte request;
  byte block;    /* written */
  byte previous; /* read; NO_BLOCK when the first is written */
  byte space;
  byte content;
}

Block blocks[BLOCKS];
Request requests[REQUESTS];
Job jobs[JOBS];
byte unfenced; /* the oldest is at place 0 */

/* Scratch of the atomic steps; put back to zero so that it adds no states. */
byte b, r, q, j, t, n;
byte pinned0, pinned1, used0, used1, chosen;
bit ok;
byte pick; /* the environment's choice where a rule leaves one */

#define TENANT_OF(request) ((request) % 2)
#define CONTENT(space, position, variant) ((space) * 3 + (position) * (1 + (variant)) + 1)
#define SPACE_OF(content) (((content) - 1) / 3)
#define EXCESS(pinned) ((pinned) > RESERVE -> (pinned) - RESERVE : 0)
#define PINNED(block) (blocks[block].state == OWNED || blocks[block].state == SEALED || blocks[block].state == RETIRING)
#define PINNED_BY(block, owner) (PINNED(block) && blocks[block].tenant == (owner) -> 1 : 0)
#define USED_BY(block, owner) (blocks[block].state != FREE && blocks[block].tenant == (owner) -> 1 : 0)

inline count() {
  pinned0 = PINNED_BY(0, 0) + PINNED_BY(1, 0) + PINNED_BY(2, 0) + PINNED_BY(3, 0);
  pinned1 = PINNED_BY(0, 1) + PINNED_BY(1, 1) + PINNED_BY(2, 1) + PINNED_BY(3, 1);
  used0 = USED_BY(0, 0) + USED_BY(1, 0) + USED_BY(2, 0) + USED_BY(3, 0);
  used1 = USED_BY(0, 1) + USED_BY(1, 1) + USED_BY(2, 1) + USED_BY(3, 1);
}

inline forget_scratch() {
  b = 0; r = 0; q = 0; j = 0; t = 0; n = 0; ok = 0; chosen = 0; pick = 0;
  pinned0 = 0; pinned1 = 0; used0 = 0; used1 = 0;
}

/* Does the share of `tenant` allow one more pinned block? */
inline may_take(owner) {
  count();
  n = (owner == 0 -> pinned0 : pinned1);
#ifdef FAULT_BORROW_RESERVE
  ok = 1;
#else
  ok = (n < RESERVE || EXCESS(pinned0) + EXCESS(pinned1) < COMMON);
#endif
}

/* The last holder has left, or a fence has passed: where does the block go? */
inline settle(at) {
  if
  :: blocks[at].after == CACHED && blocks[at].entry != 0 -> blocks[at].state = CACHED
  :: else ->
     blocks[at].state = FREE; blocks[at].entry = 0; blocks[at].tenant = 0; blocks[at].bytes = DIRTY
  fi;
  blocks[at].after = 0
}

inline release(at) {
  assert(blocks[at].holders > 0);
  blocks[at].holders--;
  if
  :: blocks[at].holders == 0 ->
     blocks[at].after = (blocks[at].entry != 0 -> CACHED : FREE);
     blocks[at].state = RETIRING;
     if
#ifdef FAULT_NO_FENCE
     :: true -> settle(at)
#else
     :: blocks[at].named == 0 -> settle(at)
     :: else
#endif
     fi
  :: else
  fi
}

/* Last to first, so that a leaf goes before what it stands on. Results in flight lose their reader. */
inline release_all(who) {
  do
  :: requests[who].held > 0 ->
     requests[who].held--;
     release(requests[who].table[requests[who].held]);
     requests[who].table[requests[who].held] = 0
  :: else -> break
  od;
  requests[who].done = 0;
  j = 0;
  do
  :: j < JOBS ->
     if
     :: jobs[j].state != NONE && jobs[j].state != COMPLETE && jobs[j].request == who -> jobs[j].request = NOBODY
     :: else
     fi;
     j++
  :: else -> break
  od;
  j = 0
}

#define STEP_UP(x, who) requests[x].age = requests[x].age - \
                        (requests[x].running && requests[x].age > requests[who].age -> 1 : 0)

inline finish(who) {
  release_all(who);
  STEP_UP(0, who);
  STEP_UP(1, who);
  STEP_UP(2, who);
  requests[who].age = 0;
  requests[who].running = 0;
  requests[who].stale = 0;
  requests[who].space = 0;
  requests[who].variant = 0
}

/* A block for `tenant`, whose share was checked: a free one, else a cached one of the tenant furthest above its reserve. */
inline hand_out(owner) {
  if
  :: blocks[0].state == FREE -> b = 0
  :: blocks[1].state == FREE -> b = 1
  :: blocks[2].state == FREE -> b = 2
  :: blocks[3].state == FREE -> b = 3
  :: else ->
     count();
     /* The tenant furthest above its reserve among those that have cached blocks; the taker when none is above. */
     chosen = owner;
     n = 0;
     t = 0;
     do
     :: t < TENANTS ->
        ok = ((blocks[0].state == CACHED && blocks[0].tenant == t) || (blocks[1].state == CACHED && blocks[1].tenant == t) ||
              (blocks[2].state == CACHED && blocks[2].tenant == t) || (blocks[3].state == CACHED && blocks[3].tenant == t));
        if
#ifdef FAULT_EVICT_ANYONE
        :: ok && t != owner -> chosen = t
#else
        :: ok && (t == 0 -> used0 : used1) > RESERVE + n -> n = (t == 0 -> used0 : used1) - RESERVE; chosen = t
#endif
        :: else
        fi;
        t++
     :: else -> break
     od;
     assert(chosen == owner || (chosen == 0 -> used0 : used1) > RESERVE);  /* E1 */
     assert(chosen != owner || (chosen == 0 -> used0 : used1) >= RESERVE); /* E2 */
     /* Any of its cached blocks: the one that stands `pick` places on, or the next after that. */
     b = pick;
     n = 0;
     do
     :: n < BLOCKS && (blocks[b].state != CACHED || blocks[b].tenant != chosen) -> b = (b + 1) % BLOCKS; n++
     :: else -> break
     od;
     assert(n < BLOCKS); /* the shares allow it, so there is a block */
#ifndef FAULT_ENTRY_STAYS
     blocks[b].entry = 0
#endif
  fi;
  assert(blocks[b].named == 0); /* not handed out before its fence */
  assert(blocks[b].holders == 0);
#ifndef FAULT_ENTRY_STAYS
  assert(blocks[b].entry == 0);
#endif
  blocks[b].state = OWNED;
  blocks[b].after = 0;
  blocks[b].tenant = owner;
  blocks[b].holders = 1
}

/* A match goes from the start without a gap, so not past a block that is still being computed. */
#define CANNOT_MATCH(who) (requests[who].stale || requests[who].held != requests[who].done)

/* The next block of `who`, if the index has it: held once more. */
inline adopt(who) {
  n = CONTENT(requests[who].space, requests[who].held, requests[who].variant);
  b = 0;
  ok = 0;
  do
  :: b < BLOCKS && !CANNOT_MATCH(who) &&
#ifdef FAULT_CROSS_NAMESPACE
     blocks[b].entry != 0 && (blocks[b].entry - 1) % 3 == (n - 1) % 3 ->
#else
     blocks[b].entry == n ->
#endif
     ok = 1; break
  :: b < BLOCKS && (CANNOT_MATCH(who) ||
#ifdef FAULT_CROSS_NAMESPACE
     blocks[b].entry == 0 || (blocks[b].entry - 1) % 3 != (n - 1) % 3) ->
#else
     blocks[b].entry != n) ->
#endif
     b++
  :: b == BLOCKS -> break
  od;
  /* Holding a cached block pins it: the share has to allow that too. */
  if
  :: ok && blocks[b].state == CACHED -> may_take(TENANT_OF(who))
  :: else
  fi;
  if
  :: ok ->
     blocks[b].holders++;
     blocks[b].state = SEALED;
     blocks[b].after = 0;
     requests[who].table[requests[who].held] = b;
     requests[who].held++;
     requests[who].done++
  :: else
  fi
}

/* Victim for a block that `request` needs: younger, and of a tenant over its reserve, not counting what retires anyway. */
#define RETIRING_BY(block, owner) (blocks[block].state == RETIRING && blocks[block].tenant == (owner) -> 1 : 0)
#define OVER_RESERVE(owner) (((owner) == 0 -> pinned0 : pinned1) - (RETIRING_BY(0, owner) + RETIRING_BY(1, owner) + \
                             RETIRING_BY(2, owner) + RETIRING_BY(3, owner)) > RESERVE)
#ifdef FAULT_OLDER_VICTIM
#define IS_VICTIM(v, request) ((v) != (request) && requests[v].running && requests[v].held > 0)
#else
#define IS_VICTIM(v, request) ((v) != (request) && requests[v].running && requests[v].held > 0 && \
                               requests[v].age > requests[request].age && \
                               (TENANT_OF(v) == TENANT_OF(request) || OVER_RESERVE(TENANT_OF(v))))
#endif

inline submit(who) {
  j = unfenced;
  assert(jobs[j].state == NONE);
  jobs[j].state = SUBMITTED;
  jobs[j].request = who;
  jobs[j].block = b;
  jobs[j].space = requests[who].space;
  jobs[j].content = CONTENT(requests[who].space, requests[who].held, requests[who].variant);
  jobs[j].previous = NO_BLOCK;
  blocks[b].named = blocks[b].named | (1 << j);
  if
  :: requests[who].held > 0 ->
     n = requests[who].table[requests[who].held - 1];
     jobs[j].previous = n;
     blocks[n].named = blocks[n].named | (1 << j)
  :: else
  fi;
  requests[who].table[requests[who].held] = b;
  requests[who].held++;
  unfenced++;
#ifndef FAULT_NO_SCRUB
  blocks[b].bytes = 0;
#endif
  assert(blocks[b].bytes == 0)
}

/* One step for `request`: adopt, or compute the next block, or make room, or wait. */
inline plan(who) {
  adopt(who);
  if
  :: ok
  :: else ->
     may_take(TENANT_OF(who));
     if
     :: ok ->
        hand_out(TENANT_OF(who));
        submit(who)
     :: else ->
        /* Retiring blocks would cover the need: wait for their fences. Else a younger victim; else stall. */
        count();
        if
        :: unfenced == 0 || (blocks[0].state != RETIRING && blocks[1].state != RETIRING && blocks[2].state != RETIRING &&
                             blocks[3].state != RETIRING) ->
           if
           :: pick < REQUESTS && IS_VICTIM(pick, who) -> q = pick; release_all(q)
           :: else ->
              if
              :: IS_VICTIM(0, who) -> q = 0; release_all(q)
              :: else ->
                 if
                 :: IS_VICTIM(1, who) -> q = 1; release_all(q)
                 :: else ->
                    if
                    :: IS_VICTIM(2, who) -> q = 2; release_all(q)
                    :: else -> q = who
                    fi
                 fi
              fi
           fi;
           assert(q == who || requests[q].age > requests[who].age) /* E4 */
        :: else
        fi
     fi
  fi
}

inline check_blocks() {
  b = 0;
  do
  :: b < BLOCKS ->
     n = 0;
     r = 0;
     do
     :: r < REQUESTS ->
        n = n + (requests[r].held > 0 && requests[r].table[0] == b -> 1 : 0) +
            (requests[r].held > 1 && requests[r].table[1] == b -> 1 : 0);
        r++
     :: else -> break
     od;
     assert(n == blocks[b].holders);
     assert((blocks[b].state == OWNED || blocks[b].state == SEALED) == (blocks[b].holders > 0));
     assert(blocks[b].state != OWNED || blocks[b].holders == 1);
     assert(blocks[b].state != CACHED || (blocks[b].entry != 0 && blocks[b].named == 0));
     assert(blocks[b].state != FREE || (blocks[b].entry == 0 && blocks[b].named == 0));
     assert(blocks[b].state != RETIRING || blocks[b].named != 0);
     assert(blocks[b].entry == 0 || blocks[b].entry == blocks[b].bytes);
     b++
  :: else -> break
  od;
  count();
  assert(EXCESS(pinned0) + EXCESS(pinned1) <= COMMON);
  /* With nothing in flight, the oldest running request finds a block in its share or a victim for it. */
  r = 0;
  do
  :: r < REQUESTS ->
     if
     :: unfenced == 0 && requests[r].running && requests[r].held < NEED &&
        (r == 0 || !requests[0].running || requests[0].age > requests[r].age) &&
        (r == 1 || !requests[1].running || requests[1].age > requests[r].age) &&
        (r == 2 || !requests[2].running || requests[2].age > requests[r].age) ->
        may_take(TENANT_OF(r));
        assert(ok || IS_VICTIM(0, r) || IS_VICTIM(1, r) || IS_VICTIM(2, r))
     :: else
     fi;
     r++
  :: else -> break
  od
}

/* Blocks differ by nothing but their numbers: after each step they are sorted, so that situations which only number them
 * differently are one state. */
#define RANK(x) ((((blocks[x].state * 8 + blocks[x].named) * 4 + blocks[x].holders) * 16 + blocks[x].entry) * 64 + \
                 blocks[x].bytes * 4 + blocks[x].tenant * 2 + (blocks[x].after == CACHED -> 1 : 0))
#define RENAMED(value) ((value) == n -> q : ((value) == q -> n : (value)))
#define EXCHANGE(field) t = blocks[n].field; blocks[n].field = blocks[q].field; blocks[q].field = t

inline exchange() {
  r = 0;
  do
  :: r < REQUESTS ->
     if
     :: requests[r].held > 0 -> requests[r].table[0] = RENAMED(requests[r].table[0])
     :: else
     fi;
     if
     :: requests[r].held > 1 -> requests[r].table[1] = RENAMED(requests[r].table[1])
     :: else
     fi;
     r++
  :: else -> break
  od;
  j = 0;
  do
  :: j < JOBS ->
     if
     :: jobs[j].state == SUBMITTED || jobs[j].state == EXECUTED ->
        jobs[j].block = RENAMED(jobs[j].block);
        jobs[j].previous = RENAMED(jobs[j].previous)
     :: else
     fi;
     j++
  :: else -> break
  od;
  EXCHANGE(state);
  EXCHANGE(after);
  EXCHANGE(tenant);
  EXCHANGE(holders);
  EXCHANGE(entry);
  EXCHANGE(bytes);
  EXCHANGE(named)
}

inline sort_blocks() {
  n = 0;
  do
  :: n < BLOCKS - 1 ->
     q = n + 1;
     do
     :: q < BLOCKS ->
        if
        :: RANK(n) > RANK(q) -> exchange()
        :: else
        fi;
        q++
     :: else -> break
     od;
     n++
  :: else -> break
  od
}

inline settle_down() {
  check_blocks();
  sort_blocks();
  forget_scratch()
}

/* Namespaces 0 and 1 are tenant 0's, 2 is tenant 1's. */
inline accept(who, space_drawn, variant_drawn) {
  requests[who].age = requests[0].running + requests[1].running + requests[2].running;
  requests[who].running = 1;
  requests[who].space = space_drawn;
  requests[who].variant = variant_drawn
}

/* In stream order. A reader finds what it expects, whatever was cancelled meanwhile. */
inline execute() {
  j = 0;
  do
  :: jobs[j].state == SUBMITTED -> break
  :: else -> j++
  od;
  n = jobs[j].block;
  if
  :: jobs[j].previous != NO_BLOCK ->
     assert(blocks[jobs[j].previous].bytes != 0);
     assert(SPACE_OF(blocks[jobs[j].previous].bytes) == jobs[j].space);
     assert(blocks[jobs[j].previous].bytes == CONTENT(jobs[j].space, 0, 0))
  :: else
  fi;
  blocks[n].bytes = jobs[j].content;
  jobs[j].state = EXECUTED
}

/* Only here is a block sealed. A twin that is held is adopted, a cached one is freed. */
inline complete() {
  j = 0;
  do
  :: jobs[j].state == EXECUTED -> break
  :: else -> j++
  od;
  jobs[j].state = COMPLETE;
  r = jobs[j].request;
  jobs[j].request = 0;
  if
  :: r == NOBODY
  :: else ->
     n = jobs[j].block;
     blocks[n].state = SEALED;
     requests[r].done++;
     if
     :: requests[r].stale
     :: else ->
        b = 0;
        do
        :: b < BLOCKS && blocks[b].entry != jobs[j].content -> b++
        :: else -> break
        od;
        if
        :: b == BLOCKS -> blocks[n].entry = jobs[j].content
        :: b < BLOCKS && blocks[b].state == CACHED ->
           blocks[b].state = FREE; blocks[b].entry = 0; blocks[b].tenant = 0; blocks[b].bytes = DIRTY;
           blocks[n].entry = jobs[j].content
        :: b < BLOCKS && blocks[b].state == SEALED ->
           blocks[b].holders++;
           requests[r].table[requests[r].done - 1] = b;
           release(n)
        :: else /* retiring: keep the own copy out of the index */
        fi
     fi
  fi;
  jobs[j].content = 0;
  jobs[j].space = 0;
  jobs[j].block = 0;
  jobs[j].previous = 0
}

/* The oldest job leaves and the other moves up, so that the same situation is one state. */
inline fence() {
  jobs[0].state = jobs[1].state;
  jobs[0].request = jobs[1].request;
  jobs[0].block = jobs[1].block;
  jobs[0].previous = jobs[1].previous;
  jobs[0].space = jobs[1].space;
  jobs[0].content = jobs[1].content;
  jobs[1].state = NONE;
  jobs[1].request = 0;
  jobs[1].block = 0;
  jobs[1].previous = 0;
  jobs[1].space = 0;
  jobs[1].content = 0;
  unfenced--;
  b = 0;
  do
  :: b < BLOCKS ->
     blocks[b].named = blocks[b].named >> 1;
     if
     :: blocks[b].state == RETIRING && blocks[b].named == 0 -> settle(b)
     :: else
     fi;
     b++
  :: else -> break
  od
}

/* A new epoch: every entry goes, whoever runs keeps its blocks and publishes nothing more. */
inline flush() {
  b = 0;
  do
  :: b < BLOCKS ->
     if
     :: blocks[b].state == CACHED ->
        blocks[b].state = FREE; blocks[b].entry = 0; blocks[b].tenant = 0; blocks[b].bytes = DIRTY
     :: else -> blocks[b].entry = 0; blocks[b].after = 0
     fi;
     b++
  :: else -> break
  od;
  r = 0;
  do
  :: r < REQUESTS -> requests[r].stale = requests[r].running; r++
  :: else -> break
  od
}

#define CAN_PLAN(request) (requests[request].running && requests[request].held < NEED && \
                           unfenced < JOBS)
#define PLAN(request, choice) d_step { CAN_PLAN(request) -> pick = choice; plan(request); settle_down() }
#define ANY(wanted) (jobs[0].state == wanted || jobs[1].state == wanted)

init {
  atomic {
    blocks[0].bytes = DIRTY;
    blocks[1].bytes = DIRTY;
    blocks[2].bytes = DIRTY;
    blocks[3].bytes = DIRTY
  };
end:
  do
  :: d_step { !requests[0].running -> accept(0, 0, 0); settle_down() }
  :: d_step { !requests[0].running -> accept(0, 0, 1); settle_down() }
  :: d_step { !requests[1].running -> accept(1, 2, 0); settle_down() }
  :: d_step { !requests[2].running -> accept(2, 0, 0); settle_down() }
  :: d_step { !requests[2].running -> accept(2, 1, 0); settle_down() }
  :: PLAN(0, 0)
  :: PLAN(0, 1)
  :: PLAN(0, 2)
  :: PLAN(0, 3)
  :: PLAN(1, 0)
  :: PLAN(1, 1)
  :: PLAN(1, 2)
  :: PLAN(1, 3)
  :: PLAN(2, 0)
  :: PLAN(2, 1)
  :: PLAN(2, 2)
  :: PLAN(2, 3)
  /* Finished, or cancelled at any moment before that: the blocks go the same way. */
  :: d_step { requests[0].running -> finish(0); settle_down() }
  :: d_step { requests[1].running -> finish(1); settle_down() }
  :: d_step { requests[2].running -> finish(2); settle_down() }
  :: d_step { ANY(SUBMITTED) -> execute(); settle_down() }
  :: d_step { ANY(EXECUTED) -> complete(); settle_down() }
  :: d_step { unfenced > 0 && jobs[0].state == COMPLETE -> fence(); settle_down() }
  :: d_step { flush(); settle_down() }
  od
}
