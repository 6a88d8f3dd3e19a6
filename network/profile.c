/* SPDX-License-Identifier: Apache-2.0
 *
 * [profile]: the names that stand for several sizes, and which of them is the batch.
 */
#include "network/private.h"

#include <inttypes.h>
#include <string.h>

#include "core/alloc.h"

static bool varies(const struct config_symbol *s)
{
    return s->most >= 0 && s->least != s->most;
}

int network_profile(struct loader *l)
{
    strata_network *net = l->net;
    const struct config_symbol *all;
    config_profile(l->c);
    const size_t n = config_symbols(l->c, &all);
    net->batch_symbol = -1;
    net->symbols = zalloc(NETWORK_MAX_SYMBOLS, sizeof *net->symbols, "symbols", l->err);
    l->begun = zalloc(n + 1, sizeof *l->begun, "symbols", l->err);
    if (!net->symbols || !l->begun)
        return STRATA_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        if (!varies(&all[i]))
            continue;
        if (net->n_symbols == NETWORK_MAX_SYMBOLS) {
            config_error(l->c, all[i].place, "more than %d names have several sizes",
                         NETWORK_MAX_SYMBOLS);
            break;
        }
        struct network_symbol *s = &net->symbols[net->n_symbols];
        if (!(s->name = duplicate(all[i].name, l->err)))
            return STRATA_ENOMEM;
        net->n_symbols++;
        s->least = all[i].least;
        s->most = all[i].most;
        s->step = all[i].step;
        s->n_sizes = all[i].n_sizes;
        memcpy(s->sizes, all[i].sizes, sizeof s->sizes);
    }
    return STRATA_OK;
}

int network_find_symbol(const strata_network *net, const char *name)
{
    for (size_t i = 0; i < net->n_symbols; i++)
        if (strcmp(net->symbols[i].name, name) == 0)
            return (int)i;
    return -1;
}

int network_require_symbol(int *symbol, const strata_network *net, const char *name,
                           strata_error *err)
{
    *symbol = network_find_symbol(net, name);
    if (*symbol >= 0)
        return STRATA_OK;
    error_set(err, STRATA_EINVAL, "%s: no dimension '%s'; %s", net->path, name,
              net->n_symbols ? "there are:" : "[profile] gives no name several sizes");
    for (size_t i = 0; i < net->n_symbols; i++)
        error_append(err, " %s", net->symbols[i].name);
    return STRATA_EINVAL;
}

int network_check_size(const strata_network *net, int symbol, int64_t size,
                       strata_error *err)
{
    const struct network_symbol *s = &net->symbols[symbol];
    if (size >= s->least && size <= s->most && (size - s->least) % s->step == 0)
        return STRATA_OK;
    if (size >= s->least && size <= s->most)
        return error_set(err, STRATA_EINVAL,
                         "%s = %" PRId64 " is none of %" PRId64 ", %" PRId64
                         ", ... of [profile], by steps of %" PRId64,
                         s->name, size, s->least, s->least + s->step, s->step);
    return error_set(err, STRATA_EINVAL,
                     "%s = %" PRId64 " is outside of %" PRId64 "..%" PRId64
                     " of [profile]",
                     s->name, size, s->least, s->most);
}

int network_symbol_of(const strata_network *net, const struct config *c, int index)
{
    const struct config_symbol *all;
    const size_t n = config_symbols(c, &all);
    return index >= 0 && (size_t)index < n ? network_find_symbol(net, all[index].name)
                                           : -1;
}

/* Whether a symbol is the first dim of inputs and no other dim; *stands: any at all. */
static bool is_first_only(const strata_network *net, int symbol, bool *stands)
{
    bool first = true;
    *stands = false;
    for (size_t i = 0; i < net->n_inputs; i++)
        for (int d = 0; d < STRATA_MAX_RANK; d++)
            if (net->inputs[i].symbols[d] == symbol) {
                *stands = true;
                first &= d == 0;
            } else if (net->inputs[i].sums[d].first == symbol ||
                       net->inputs[i].sums[d].second == symbol)
                first = false;
    return first && *stands;
}

static struct config_place place_of(const struct loader *l, const char *name)
{
    const struct config_symbol *all;
    const size_t n = config_symbols(l->c, &all);
    for (size_t i = 0; i < n; i++)
        if (strcmp(all[i].name, name) == 0)
            return all[i].place;
    return config_find(l->c, "profile")->place;
}

/* The symbol, of those that may be, that most inputs begin with, the first of such as
 * are as many; -1: a name of one size is in more. */
static int find_batch(const struct loader *l)
{
    const struct config_symbol *all;
    const size_t n = config_symbols(l->c, &all);
    int found = -1, most = 0, of_any = 0;
    bool stands;
    for (size_t i = 0; i < n; i++) {
        const int at = network_find_symbol(l->net, all[i].name);
        const struct network_symbol *s = at < 0 ? NULL : &l->net->symbols[at];
        of_any = l->begun[i] > of_any ? l->begun[i] : of_any;
        if (!s || !is_first_only(l->net, at, &stands) || s->least < 1 || s->step != 1 ||
            l->begun[i] <= most)
            continue;
        found = at;
        most = l->begun[i];
    }
    return most == of_any ? found : -1;
}

void network_settle_profile(struct loader *l)
{
    strata_network *net = l->net;
    size_t plans = 1;
    bool stands;
    for (size_t i = 0; i < net->n_symbols; i++) {
        const struct network_symbol *s = &net->symbols[i];
        is_first_only(net, (int)i, &stands);
        plans *= s->n_sizes; /* of 16 each, 8 at most */
        if (!stands && !config_errors(l->c))
            config_error(
                l->c, place_of(l, s->name),
                "'%s' has several sizes, and stands in no input's shape; give it "
                "one",
                s->name);
    }
    net->batch_symbol = find_batch(l);
    if (plans > NETWORK_MAX_PLANS)
        config_error(l->c, config_find(l->c, "profile")->place,
                     "the listed sizes make %zu combinations, each of which would be "
                     "planned for; at most %d are: list fewer",
                     plans, NETWORK_MAX_PLANS);
}
