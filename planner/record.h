/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan on record: what was decided for each layer and tensor, as JSON and back. The
 * section `plan` of an engine file is one; layout and meaning of every field:
 * docs/files/engine.md.
 *
 *   record   plan -> JSON; JSON -> decisions and conversions, compared with the network
 *   restore  decisions, as the only candidates of a model -> the plan
 */
#ifndef PLANNER_RECORD_H
#define PLANNER_RECORD_H

#include <jansson.h>

#include "planner/planner.h"

#define RECORD_SECTION "plan" /* where a file has it, for messages */

/* What was decided for a layer. */
struct record_decision {
    enum candidate_kind kind;
    const char *impl;            /* of those that run one: a name in the JSON */
    const struct module *module; /* and who brings it here */
    int row;
    bool any_impl; /* only the formats and what is fused bind */
    bool homed;
    size_t fused;
    int n_in, n_out; /* formats that are given; the last one repeats */
    int in_formats[PLAN_MAX_PORTS], out_formats[PLAN_MAX_PORTS]; /* table indices */
    int64_t cost;
};

struct record_conversion {
    int tensor; /* of the network */
    struct plan_label from, to;
    int64_t cost;
    enum plan_reason reason;
};

struct record {
    json_t *json;                      /* a reference: holds the names */
    struct record_decision *decisions; /* one a layer */
    struct record_conversion *conversions;
    size_t n_conversions;
    bool any_dirty; /* as in planner_model */
    bool pitched;   /* tensors may lie inside others at a pitch: since that was planned */
    bool rows;      /* the same along rows */
    bool residuals; /* the same of residuals */
    int64_t objective, bound;
    bool proved;
    uint64_t nodes;
    struct cost_report costs;
    struct planner_trade trade;
    int64_t *in_place; /* of each step of the execution, as execution_make orders them */
    size_t n_in_place; /* 0: not timed, or before there were such costs */
};

/* Modules have numbers in a record; what they are is said elsewhere. */
struct record_modules {
    const void *list;
    int (*number)(const void *list, const struct module *m);      /* -1: none */
    const struct module *(*at)(const void *list, int64_t number); /* NULL: none */
};

/* The planner's plan, with costs in place where x, its execution, has them. NULL: no
 * memory. */
json_t *record_json(const struct planner *planner, const struct execution *x,
                    const struct record_modules *modules);
/* The same back, for a network: what is read is hostile until it was compared with it. */
int record_read(struct record **out, json_t *json, const strata_network *net,
                const struct record_modules *modules, strata_error *err);
/* The decisions alone, for planner_make_like; without JSON. Names live as long as the
 * planner's network. */
int record_decisions(struct record **out, const struct planner *planner,
                     strata_error *err);
/* left.c: the ways that the planner's plan is without, and those of a record back. */
json_t *record_left_json(const struct planner *planner);
int record_read_left(struct planner *planner, const json_t *list, strata_error *err);
/* Costs in place to the execution of its plan, if they are of as many steps. */
void record_in_place(const struct record *r, struct execution *x);
void record_free(struct record *r);

#endif /* PLANNER_RECORD_H */
