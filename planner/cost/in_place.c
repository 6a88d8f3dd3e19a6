/* SPDX-License-Identifier: Apache-2.0
 *
 * Costs in place: what a step adds to those before it. Two times of almost one length are
 * taken from each other, so that noise may leave a step with nothing or less. Neighbours
 * are then taken together, and share what they add by their prices. The sum stays what
 * the whole takes.
 */
#include "planner/cost/cost.h"

#include <math.h>

#include "planner/execution.h"

#define LEAST 0.125 /* of its price: a step that seems to add less is noise */

/* What steps share by: what no run does takes no time, all else some. */
static int64_t weight(const struct execution_step *s)
{
    return s->kind == STEP_RELABEL || s->once ? 0 : s->cost > 0 ? s->cost : 1;
}

static size_t begin_of(const struct cost_prefix *p, size_t i)
{
    return i ? p[i - 1].end : 0;
}

static double rise_of(const struct cost_prefix *p, size_t i)
{
    return p[i].ns - (i ? p[i - 1].ns : 0);
}

static int64_t weigh(const struct execution *x, const struct cost_prefix *p, size_t i)
{
    int64_t sum = 0;
    for (size_t s = begin_of(p, i); s < p[i].end; s++)
        sum += weight(&x->steps[s]);
    return sum;
}

static bool is_noise(const struct execution *x, const struct cost_prefix *p, size_t i)
{
    return rise_of(p, i) * PLAN_UNIT_PER_NS < LEAST * (double)weigh(x, p, i);
}

/* Leave out the ends between which too little seems to lie. Gives how many stay. */
static size_t join(const struct execution *x, struct cost_prefix *p, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        p[kept++] = p[i];
        while (kept > 1 && (is_noise(x, p, kept - 1) || is_noise(x, p, kept - 2))) {
            p[kept - 2] = p[kept - 1];
            kept--;
        }
    }
    return kept;
}

void cost_in_place(struct execution *x, struct cost_prefix *p, size_t n)
{
    int64_t before = 0;
    if (n == 0 || !(p[n - 1].ns > 0))
        return;
    n = join(x, p, n);
    for (size_t i = 0; i < n; i++) {
        const double begin = p[i].ns - rise_of(p, i), all = (double)weigh(x, p, i);
        double done = 0;
        for (size_t s = begin_of(p, i); s < p[i].end; s++) {
            done += (double)weight(&x->steps[s]);
            const double end = begin + rise_of(p, i) * (all > 0 ? done / all : 1);
            const int64_t until = llround(end * PLAN_UNIT_PER_NS);
            x->steps[s].in_place = until - before;
            before = until;
        }
    }
    x->in_place = before;
}
