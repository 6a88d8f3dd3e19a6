/* SPDX-License-Identifier: Apache-2.0
 *
 * Random planning problems small enough for brute force, and the brute force.
 */
#ifndef TESTS_PLANNER_SOLVER_DRAW_H
#define TESTS_PLANNER_SOLVER_DRAW_H

#include "core/alloc.h"
#include "planner/solver/plan.h"

enum {
    DRAW_LABELS = 6,
    DRAW_MANY = 16,
    DRAW_OPS = 20,
    DRAW_CHOICES = 12,
    DRAW_PORTS = 4
};

/* A network whose operations have one output each; readers come after producers. */
struct drawn {
    struct plan_problem p;
    struct plan_op ops[DRAW_OPS];
    struct plan_tensor tensors[DRAW_OPS];
    struct plan_choice choices[DRAW_OPS][DRAW_CHOICES];
    struct plan_reader readers[DRAW_OPS][DRAW_PORTS * DRAW_OPS];
    int in[DRAW_OPS][DRAW_PORTS], out[DRAW_OPS];
    int64_t conversion[DRAW_OPS][DRAW_MANY * DRAW_MANY];
    char name[DRAW_OPS][16];
};

struct draw_shape {
    int n_ops, n_labels, max_choices;
    int missing;  /* percent of conversions */
    int max_cost; /* small: many ties */
    bool precise; /* labels differ in precision */
};

void draw_seed(uint64_t seed);
int draw(int n); /* 0 .. n - 1 */
void draw_network(struct drawn *w, const struct draw_shape *shape);
/* Point the inner pointers at w's own arrays, after a copy, and list the readers anew. */
void draw_relink(struct drawn *w);
/* By growing sets of labels one at a time: nothing in common with plan_tree. */
int64_t draw_tree(const struct plan_problem *p, int tensor, int root, uint64_t wanted);
/* Least cost over all assignments, and the next ones up to n, ascending. */
size_t draw_brute_force(const struct plan_problem *p, int64_t *costs, size_t n);
int64_t draw_optimum(const struct plan_problem *p);

#endif /* TESTS_PLANNER_SOLVER_DRAW_H */
