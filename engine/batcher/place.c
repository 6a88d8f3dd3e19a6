/* SPDX-License-Identifier: Apache-2.0
 *
 * Several devices at one queue. Where one is idle, no other takes a run only because its
 * delay is over; one that is lost takes none any more, and what it ran goes to the
 * others.
 */
#include "engine/batcher/batcher.h"

#include <inttypes.h>
#include <string.h>

static int differ(const strata_engine *first, const strata_engine *other, int index,
                  const char *what, strata_error *err)
{
    return error_set(
        err, STRATA_EINVAL,
        "engine %d (%s) differs from the first (%s) in %s; build both of one "
        "network",
        index, other->network->path, first->network->path, what);
}

static int compare(const strata_engine *first, const strata_engine *other, int index,
                   strata_error *err)
{
    if (other->batch != first->batch)
        return differ(first, other, index, "its batch", err);
    if (strata_engine_bindings(first) != strata_engine_bindings(other))
        return differ(first, other, index, "how many bindings it has", err);
    for (int i = 0; i < strata_engine_bindings(first); i++) {
        strata_binding a = {.struct_size = sizeof a}, b = a;
        int status = strata_engine_binding(first, i, &a, err);
        if (status == STRATA_OK)
            status = strata_engine_binding(other, i, &b, err);
        if (status != STRATA_OK)
            return status;
        if (strcmp(a.name, b.name) != 0 || !strata_desc_equal(&a.desc, &b.desc))
            return differ(first, other, index, a.name, err);
    }
    return STRATA_OK;
}

int batcher_compare(const strata_engine *const *engines, int n, strata_error *err)
{
    int status = STRATA_OK;
    for (int i = 0; i < n && status == STRATA_OK; i++)
        status = !engines[i]
                     ? error_set(err, STRATA_EINVAL, "engine %d of %d is NULL", i, n)
                     : compare(engines[0], engines[i], i, err);
    return status;
}

bool batcher_has_idle(const strata_batcher *b, const struct place *but)
{
    for (int i = 0; i < b->n_places; i++) {
        const struct place *p = &b->places[i];
        if (p != but && p->running == 0 && !p->lost)
            return true;
    }
    return false;
}

void batcher_wake(strata_batcher *b)
{
    if (b->n_places > 1) /* the one that may take it is not known */
        pthread_cond_broadcast(&b->changed);
    else
        pthread_cond_signal(&b->changed);
}

static bool lose(strata_batcher *b, struct place *p)
{
    bool others = false;
    for (int i = 0; i < b->n_places; i++)
        others = others || (&b->places[i] != p && !b->places[i].lost);
    if (others && !p->lost)
        log_line(STRATA_LOG_ERROR, "batcher: engine %td is out, the others go on",
                 p - b->places);
    p->lost = p->lost || others;
    return others;
}

static void give_back(strata_batcher *b, struct run *r)
{
    strata_request *last = r->requests;
    for (strata_request *one = r->requests; one; last = one, one = one->next) {
        b->stats.waiting++;
        b->waiting_rows += one->rows;
    }
    last->next = b->first;
    if (!b->first)
        b->end = &last->next;
    b->first = r->requests;
    pthread_cond_broadcast(&b->changed);
}

/* Not once it ends: those who could take them may be gone. */
bool batcher_give_back(struct worker *w, struct run *r)
{
    strata_batcher *b = w->batcher;
    if (r->status != STRATA_EDEVICELOST || b->n_places == 1)
        return false;
    pthread_mutex_lock(&b->lock);
    const bool given = !b->stop && lose(b, w->place);
    if (given)
        give_back(b, r);
    pthread_mutex_unlock(&b->lock);
    return given;
}

int64_t strata_batcher_rows_of(strata_batcher *b, int index)
{
    if (!b || index < 0 || index >= b->n_places)
        return -1;
    pthread_mutex_lock(&b->lock);
    const int64_t rows = b->places[index].rows;
    pthread_mutex_unlock(&b->lock);
    return rows;
}
