/* SPDX-License-Identifier: Apache-2.0
 *
 * If, Loop, Scan and SequenceMap: graphs in attributes, put in place once, or once a
 * round; mutual recursion where one holds another.
 */
#include "network/import/control/control.h"
#include "network/import/counted/counted.h"
#include "network/import/rounds/rounds.h"

#include <stdio.h>
#include <string.h>

/* ---- branches ------------------------------------------------------------------------
 */

/* A branch's values, or NULL where something of it was refused. */
static const int *run_branch(struct import *im, struct node *n, const char *name,
                             strata_error *err, int *status)
{
    struct body b;
    const size_t refusals = im->all_refusals;
    int *out = arena_get(&im->g.arena, (size_t)n->n_out, sizeof *out);
    if (!out || !body_open(&b, im, n, name, 0, n->n_out))
        return NULL;
    for (int i = 0; i < n->n_out; i++) {
        struct value *v = graph_value(&im->g, out[i] = graph_add_value(&im->g, ""));
        if (v)
            v->readers = 1;
    }
    *status = body_run(&b, *name == 't' ? "then/" : "else/", NULL, out, err);
    return *status == STRATA_OK && im->all_refusals == refusals ? out : NULL;
}

/* Whether one element of a condition chooses between the two: they are of one shape. */
static bool is_choice(const struct value *condition, const struct value *a,
                      const struct value *b)
{
    bool same = a && b && !a->sequence && !b->sequence && a->dtype == b->dtype &&
                a->rank >= 0 && a->rank == b->rank && condition->rank >= 0 &&
                condition->rank <= a->rank && value_count(condition) == 1;
    for (int d = 0; same && d < a->rank; d++)
        same = a->dims[d] == b->dims[d];
    return same;
}

/* A condition that is computed: both branches, and what it chooses of them, where they
 * are of like shapes. False: they are not, and nothing is refused. */
static bool choose_later(struct import *im, struct node *n, strata_error *err,
                         int *status)
{
    struct graph *g = &im->g;
    const size_t refusals = im->n_refusals, all = im->all_refusals;
    const int *a = run_branch(im, n, "then_branch", err, status);
    const int *b = a ? run_branch(im, n, "else_branch", err, status) : NULL;
    bool good = b != NULL;
    for (int i = 0; good && i < n->n_out; i++)
        good = is_choice(graph_value(g, n->in[0]), graph_value(g, a[i]),
                         graph_value(g, b[i])) ||
               counted_fit(im, a[i], b[i]);
    for (int i = 0; good && i < n->n_out; i++) {
        const int in[] = {n->in[0], a[i], b[i]};
        if (n->out[i] >= 0 && !counted_choose(im, n, i, a[i], b[i]))
            graph_add_node(g, "Where", in, 3, &n->out[i], 1);
    }
    if (!good) {
        im->n_refusals = refusals;
        im->all_refusals = all;
    }
    return good;
}

int control_if(struct import *im, struct node *n, strata_error *err)
{
    int64_t condition;
    int status = STRATA_OK;
    struct body b;
    const struct value *v =
        n->n_in > n->n_captured ? graph_value(&im->g, n->in[0]) : NULL;
    if (v && !v->constant && !v->refused) {
        if (choose_later(im, n, err, &status) || status != STRATA_OK)
            return status;
    }
    if (n->n_in <= n->n_captured ||
        !control_integer(im, n, n->in[0], "the condition", &condition) ||
        !body_open(&b, im, n, condition ? "then_branch" : "else_branch", 0, n->n_out))
        return STRATA_OK;
    im->branches = im->branches * 31 + (condition ? 1 : 2);
    return body_run(&b, "", NULL, n->out, err);
}

/* ---- rounds --------------------------------------------------------------------------
 */

/* A body run again and again, with states that each round hands to the next, and values
 * of each round that are joined at the end. */
struct rounds {
    struct body body;
    int n_states, n_joined; /* outputs of the node */
    int extra;              /* outputs of the body before these */
    int *in;                /* of the body's next round: states are at `states` */
    int *states;
    int *out;     /* of the round before */
    int **joined; /* a list a value, a part a round */
    size_t *capacities;
    int n; /* rounds so far */
};

static bool rounds_make(struct rounds *r, int n_states, int before, int extra)
{
    struct arena *a = &r->body.im->g.arena;
    const struct onnx_graph *graph = r->body.graph;
    r->n_states = n_states;
    r->n_joined = (int)graph->n_outputs - n_states - extra;
    r->extra = extra;
    if (r->n_joined < 0 || r->body.node->n_out > n_states + r->n_joined) {
        import_refuse_node(r->body.im, r->body.node, NULL,
                           "the body has %zu outputs, which do not fit the node's %d",
                           graph->n_outputs, r->body.node->n_out);
        return false;
    }
    r->in = arena_get(a, graph->n_inputs, sizeof *r->in);
    r->out = arena_get(a, graph->n_outputs, sizeof *r->out);
    r->joined = arena_get(a, (size_t)r->n_joined, sizeof(int *));
    r->capacities = arena_get(a, (size_t)r->n_joined, sizeof *r->capacities);
    r->states = r->in ? r->in + before : NULL;
    return r->in && r->out && r->joined && r->capacities;
}

/* One round of r->in. *good: it is all there; else something was refused. */
static int rounds_run(struct rounds *r, bool *good, strata_error *err)
{
    struct import *im = r->body.im;
    struct graph *g = &im->g;
    const size_t first = g->n_nodes, n_out = r->body.graph->n_outputs;
    char more[24];
    snprintf(more, sizeof more, "%d/", r->n);
    for (size_t i = 0; i < n_out; i++) {
        struct value *v = graph_value(g, r->out[i] = graph_add_value(g, ""));
        if (v)
            v->readers = 1;
    }
    int status = body_run(&r->body, more, r->in, r->out, err);
    *good = status == STRATA_OK && body_count(&r->body, first);
    for (size_t i = 0; *good && i < n_out; i++)
        *good = !g->values[r->out[i]].refused;
    for (int i = 0; *good && i < r->n_states; i++)
        r->states[i] = r->out[r->extra + i];
    for (int i = 0; *good && i < r->n_joined; i++) {
        int *all = arena_grow(&g->arena, r->joined[i], &r->capacities[i], (size_t)r->n,
                              sizeof *all);
        if (!all)
            return arena_status(&g->arena, "a loop", err);
        r->joined[i] = all;
        all[r->n] = r->out[r->extra + r->n_states + i];
    }
    r->n++;
    return status;
}

static const struct onnx_value *joined_type(const struct rounds *r, int i)
{
    return &r->body.graph->outputs[r->extra + r->n_states + i];
}

/* ---- Loop ----------------------------------------------------------------------------
 */

/* Trip count, and whether the first round runs; -1: no end is told. */
static bool read_bounds(struct import *im, struct node *n, int64_t *trips, int64_t *go,
                        bool *asked)
{
    *trips = -1;
    *go = 1;
    *asked = n->in[1] >= 0;
    return (n->in[0] < 0 || control_integer(im, n, n->in[0], "the trip count", trips)) &&
           (n->in[1] < 0 || control_integer(im, n, n->in[1], "the condition", go));
}

/* What all rounds appended to a state that began so. */
static void give_appended(struct import *im, struct node *n, int i, int initial,
                          int appended, int trips)
{
    struct graph *g = &im->g;
    const struct value v = g->values[appended];
    int64_t dims[STRATA_MAX_RANK], each = v.dims[1];
    for (int d = 1; d < v.rank; d++)
        dims[d - 1] = v.dims[d];
    dims[0] *= v.dims[0];
    const int rows = counted_reshape(im, n, appended, v.rank - 1, dims);
    const int in[] = {initial, rows};
    if (each != 1) {
        trips = counted_two(im, n, "Mul", trips, counted_integer(im, each));
        counted_bound_rows(im, trips, dims[0]);
    }
    if (!g->values[trips].constant)
        counted_tell(im, rows, trips, 0);
    if (g->values[initial].dims[0] == 0)
        graph_add_node(g, "Identity", &rows, 1, &n->out[i], 1);
    else
        node_set_integer(g, graph_add_node(g, "Concat", in, 2, &n->out[i], 1), "axis", 0);
}

/* NULL, or why what the body made cannot be joined with that of other rounds. */
static const char *refuse_joined(const struct import *im, int made)
{
    const struct rounds_lane *l = rounds_lane(im, made);
    if (!l && counted_axis(im, made) >= 0)
        return "each round leaves rows whose number values tell,";
    return l && (l->n_axes || l->zeros || l->state || l->appended)
               ? "a round leaves what has a computed size, or a state,"
               : NULL;
}

static const char *refuse_state(const struct import *im, int made, int state)
{
    const struct rounds_lane *l = rounds_lane(im, made);
    return l && (l->state == state + 1 || l->appended == state + 1)
               ? NULL
               : "a state is more than what each round appends to it,";
}

static void give_state(struct import *im, struct node *n, int i, int made, int trips)
{
    if (rounds_lane(im, made)->state)
        control_give(im, n, i, n->in[2 + i]);
    else
        give_appended(im, n, i, n->in[2 + i], made, trips);
}

static void give_joined(struct import *im, struct node *n, int at, int made, int64_t most,
                        int trips)
{
    const int all = rounds_spread(im, n, made, most);
    const int own = rounds_add(im, n, "Identity", &all, 1);
    if (!im->g.values[trips].constant)
        counted_tell(im, own, trips, 0);
    graph_add_node(&im->g, "Identity", &own, 1, &n->out[at], 1);
}

/* What the body made in one go, as the node's outputs; false, and refused. */
static bool give_rounds(struct import *im, struct node *n, const struct rounds *r,
                        int64_t most, int trips)
{
    int64_t go;
    const char *why = NULL;
    if (!control_integer(im, n, r->out[0], "the condition of a round", &go))
        return false;
    if (go == 0)
        why = "a round ends it,";
    for (int i = 0; i < r->n_states + r->n_joined && !why; i++) {
        const int made = r->out[1 + i];
        const bool joined = i >= r->n_states;
        why = joined ? refuse_joined(im, made) : refuse_state(im, made, i);
        if (why || i >= n->n_out || n->out[i] < 0)
            continue;
        if (joined)
            give_joined(im, n, i, made, most, trips);
        else
            give_state(im, n, i, made, trips);
    }
    if (why)
        rounds_refuse(im, n, why);
    return !why;
}

/* All rounds at once, of which `trips` count. */
static int run_at_once(struct import *im, struct node *n, int64_t most, int trips,
                       bool *done, strata_error *err)
{
    static const unsigned char yes = 1;
    const int n_states = control_inputs(n) - 2;
    struct rounds r = {0};
    struct graph *g = &im->g;
    *done = false;
    if (!body_open(&r.body, im, n, "body", n_states + 2, -1) ||
        !rounds_make(&r, n_states, 2, 1))
        return STRATA_OK;
    const size_t first = g->n_nodes, n_out = r.body.graph->n_outputs;
    r.in[0] = rounds_index(im, most);
    r.in[1] = graph_add_constant(g, "", STRATA_BOOL8, 0, NULL, &yes);
    for (int i = 0; i < n_states; i++)
        r.in[2 + i] = rounds_state(im, most, n->in[2 + i], i);
    for (size_t i = 0; i < n_out; i++) {
        struct value *v = graph_value(g, r.out[i] = graph_add_value(g, ""));
        if (v)
            v->readers = 1;
    }
    const int status = body_run(&r.body, "", r.in, r.out, err);
    bool good = status == STRATA_OK && body_count(&r.body, first);
    for (size_t i = 0; good && i < n_out; i++)
        good = !g->values[r.out[i]].refused;
    *done = good && give_rounds(im, n, &r, most, trips);
    return status;
}

/* Rounds that cannot be one after the other, of a number that is known: at once, else
 * what stands in the way of the former is told. */
static int run_instead(struct import *im, struct node *n, int64_t trips, size_t refusals,
                       size_t all, strata_error *err)
{
    const size_t own = im->n_refusals, own_all = im->all_refusals;
    bool done = false;
    const int status =
        trips > 0 && trips <= ROUNDS_MOST
            ? run_at_once(im, n, trips, counted_integer(im, trips), &done, err)
            : STRATA_OK;
    im->n_refusals = done ? refusals : own;
    im->all_refusals = done ? all : own_all;
    if (!done)
        node_refuse(&im->g, n);
    return status;
}

/* Whether how many rounds there are hangs on values, and nothing ends them before. */
static bool is_counted(const struct import *im, const struct node *n)
{
    const struct value *go = n->n_in > 1 ? graph_value(&im->g, n->in[1]) : NULL;
    return control_inputs(n) >= 2 && counted_is_size(im, n->in[0]) &&
           counted_least(im, n->in[0], 0) >= 0 && counted_most(im, n->in[0], 0) > 0 &&
           counted_most(im, n->in[0], 0) <= ROUNDS_MOST &&
           (!go || (go->constant && value_integer(go, 0) != 0));
}

int control_loop(struct import *im, struct node *n, strata_error *err)
{
    const int n_states = control_inputs(n) - 2;
    struct rounds r = {0};
    int64_t trips, go;
    bool asked, good = true;
    int status = STRATA_OK;
    if (n_states < 0) {
        import_refuse_node(im, n, NULL, "it has no inputs for trip count and condition");
        return STRATA_OK;
    }
    const size_t refusals = im->n_refusals, all = im->all_refusals;
    if (is_counted(im, n)) {
        status = run_at_once(im, n, counted_most(im, n->in[0], 0),
                             counted_element(im, n, n->in[0], 0), &good, err);
        if (!good)
            node_refuse(&im->g, n);
        return status;
    }
    if (!read_bounds(im, n, &trips, &go, &asked) ||
        !body_open(&r.body, im, n, "body", n_states + 2, -1) ||
        !rounds_make(&r, n_states, 2, 1))
        return STRATA_OK;
    for (int i = 0; i < n_states; i++)
        r.states[i] = n->in[2 + i];
    for (int64_t i = 0; status == STRATA_OK && (trips < 0 || i < trips) && go; i++) {
        static const unsigned char yes = 1;
        r.in[0] = graph_add_integers(&im->g, 0, &i, 1);
        r.in[1] = graph_add_constant(&im->g, "", STRATA_BOOL8, 0, NULL, &yes);
        status = rounds_run(&r, &good, err);
        if (status == STRATA_OK && good && asked)
            good = control_integer(im, n, r.out[0], "the condition of a round", &go);
        if (!good)
            break;
    }
    if (!good && status == STRATA_OK)
        return run_instead(im, n, go ? trips : -1, refusals, all, err);
    for (int i = 0; good && i < n_states; i++)
        control_give(im, n, i, r.states[i]);
    for (int i = 0; good && i < r.n_joined; i++)
        control_stack(im, n, n_states + i, r.joined[i], r.n, 0, joined_type(&r, i));
    return status;
}

/* ---- Scan ----------------------------------------------------------------------------
 */

/* Entry i of a list of integers; 0 where there is none. */
static int64_t listed(const struct node *n, const char *name, int i)
{
    const struct onnx_attribute *a = node_attribute(n, name);
    return a && a->kind == ONNX_A_INTEGERS && (size_t)i < a->n ? a->integers[i] : 0;
}

/* Axis of scanned input i, within its rank; -1, and refused. */
static int64_t scan_axis(struct import *im, struct node *n, int port, int i)
{
    const struct value *v = upgrade_input(im, n, port);
    const int64_t axis = listed(n, "scan_input_axes", i);
    const int64_t at = v && axis < 0 ? axis + v->rank : axis;
    if (v && at >= 0 && at < v->rank)
        return at;
    import_refuse_node(im, n, NULL, "axis %lld of scanned input %d is none of its dims",
                       (long long)axis, i);
    return -1;
}

/* Rounds: the dim that all scanned inputs share; -1, and refused. */
static int64_t scan_length(struct import *im, struct node *n, int first, int n_scanned)
{
    int64_t length = -1;
    for (int i = 0; i < n_scanned; i++) {
        const int64_t axis = scan_axis(im, n, first + i, i);
        if (axis < 0)
            return -1;
        const int64_t dim = upgrade_input(im, n, first + i)->dims[axis];
        if (length >= 0 && dim != length) {
            import_refuse_node(im, n, NULL, "scanned inputs are of %lld and of %lld",
                               (long long)length, (long long)dim);
            return -1;
        }
        length = dim;
    }
    if (length < 0)
        import_refuse_node(im, n, NULL, "it scans no input");
    return length;
}

static void reverse(int *values, int n)
{
    for (int i = 0; i < n / 2; i++) {
        const int other = values[i];
        values[i] = values[n - 1 - i];
        values[n - 1 - i] = other;
    }
}

int control_scan(struct import *im, struct node *n, strata_error *err)
{
    const int64_t scanned = node_integer(n, "num_scan_inputs", 0);
    const int n_in = control_inputs(n);
    struct rounds r = {0};
    bool good = true;
    int status = STRATA_OK;
    if (scanned < 1 || scanned > n_in) {
        import_refuse_node(im, n, NULL, "'num_scan_inputs' is %lld of %d inputs",
                           (long long)scanned, n_in);
        return STRATA_OK;
    }
    const int n_states = n_in - (int)scanned;
    const int64_t length = scan_length(im, n, n_states, (int)scanned);
    if (length < 0 || !body_open(&r.body, im, n, "body", n_in, -1) ||
        !rounds_make(&r, n_states, 0, 0))
        return STRATA_OK;
    for (int i = 0; i < n_states; i++)
        r.states[i] = n->in[i];
    for (int64_t t = 0; status == STRATA_OK && good && t < length; t++) {
        for (int i = 0; i < (int)scanned; i++) {
            const bool back = listed(n, "scan_input_directions", i) != 0;
            r.in[n_states + i] =
                control_pick(im, n, n->in[n_states + i], back ? length - 1 - t : t,
                             scan_axis(im, n, n_states + i, i));
        }
        status = rounds_run(&r, &good, err);
    }
    if (!good)
        node_refuse(&im->g, n);
    for (int i = 0; good && i < n_states; i++)
        control_give(im, n, i, r.states[i]);
    for (int i = 0; good && i < r.n_joined; i++) {
        if (listed(n, "scan_output_directions", i))
            reverse(r.joined[i], r.n);
        control_stack(im, n, n_states + i, r.joined[i], r.n,
                      listed(n, "scan_output_axes", i), joined_type(&r, i));
    }
    return status;
}

/* ---- SequenceMap ---------------------------------------------------------------------
 */

int control_sequence_map(struct import *im, struct node *n, strata_error *err)
{
    const struct value *first = upgrade_input(im, n, 0);
    const int n_in = control_inputs(n);
    struct rounds r = {0};
    bool good = true;
    int status = STRATA_OK;
    if (!first || !first->sequence) {
        import_refuse_node(im, n, NULL, "its first input is no sequence known here");
        return STRATA_OK;
    }
    const int rounds = first->sequence->n;
    if (!body_open(&r.body, im, n, "body", n_in, -1) || !rounds_make(&r, 0, 0, 0))
        return STRATA_OK;
    for (int t = 0; status == STRATA_OK && good && t < rounds; t++) {
        for (int i = 0; i < n_in; i++) {
            const struct value *v = upgrade_input(im, n, i);
            const struct sequence *list = v ? v->sequence : NULL;
            r.in[i] = list && t < list->n ? list->values[t] : n->in[i];
        }
        status = rounds_run(&r, &good, err);
    }
    if (!good)
        node_refuse(&im->g, n);
    for (int i = 0; good && i < r.n_joined; i++)
        control_give_list(im, n, i, r.joined[i], r.n);
    return status;
}
