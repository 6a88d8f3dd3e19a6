/* SPDX-License-Identifier: Apache-2.0
 *
 * The [bench] section: how `strata bench` measures, where its options do not say.
 */
#include "network/private.h"

static void read_percentiles(struct loader *l, struct config_section *s)
{
    const struct config_pair *p = config_get(s, "percentiles");
    struct bench_options *b = &l->net->bench;
    if (!p ||
        !config_reals(l->c, p, b->percentiles, BENCH_MAX_PERCENTILES, &b->n_percentiles))
        return;
    for (size_t i = 0; i < b->n_percentiles; i++)
        if (!(b->percentiles[i] > 0 && b->percentiles[i] <= 100))
            config_error(l->c, p->value_place,
                         "%g is not a percentile: above 0, at most "
                         "100",
                         b->percentiles[i]);
}

int network_bench(struct loader *l, struct config_section *s)
{
    struct bench_options *b = &l->net->bench;
    const struct {
        const char *key;
        int64_t min, max;
        int64_t *value;
    } counts[] = {
        {"iterations", 1, INT32_MAX, &b->iterations}, {"streams", 1, 256, &b->streams},
        {"contexts", 1, 1024, &b->contexts},          {"threads", 1, 256, &b->threads},
        {"in_flight", 1, 256, &b->in_flight},
    };
    static const char *const keys[] = {
        "warmup",    "duration",  "iterations", "streams",    "contexts",   "threads",
        "in_flight", "transfers", "turns",      "cold_cache", "percentiles"};
    const struct config_pair *warmup = config_get(s, "warmup");
    const struct config_pair *duration = config_get(s, "duration");
    const struct config_pair *transfers = config_get(s, "transfers");
    const struct config_pair *cold = config_get(s, "cold_cache");
    const struct config_pair *turns = config_get(s, "turns");
    bool takes = false;
    if (warmup)
        config_time(l->c, warmup, &b->warmup);
    if (duration)
        config_time(l->c, duration, &b->duration);
    for (size_t i = 0; i < ARRAY_LENGTH(counts); i++) {
        const struct config_pair *p = config_get(s, counts[i].key);
        if (p)
            config_int(l->c, p, counts[i].min, counts[i].max, counts[i].value);
    }
    if (transfers)
        config_bool(l->c, transfers, &b->transfers);
    if (cold)
        config_bool(l->c, cold, &b->cold_cache);
    if (turns && config_bool(l->c, turns, &takes))
        b->turns = takes ? 1 : -1;
    read_percentiles(l, s);
    config_unknown(l->c, s, keys, ARRAY_LENGTH(keys));
    return STRATA_OK;
}
