/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys of costs: what a time depends on, and nothing else.
 */
#include "tests/planner/costing.h"

TestSuite(cost_keys, .init = open_folder, .fini = close_folder, .timeout = 600);

/* A sum of a tensor with itself, and one of that with another. */
static void write_sums(void)
{
    FILE *f = fopen(net, "w");
    cr_assert_not_null(f);
    fputs("[network]\nformat = 1\noutputs = other\n[runtime]\nthreads = 1\n"
          "[build]\nfusion = no\n[input x]\nshape = 1 x 3 x 8 x 8\n"
          "[layer a]\ntype = Activation\nkind = tanh\n"
          "[layer twice]\ntype = ElementWise\nop = sum\ninputs = a, a\n"
          "[layer other]\ntype = ElementWise\nop = product\ninputs = a, twice\n",
          f);
    fclose(f);
}

/* What was measured in one mode says nothing of another. */
Test(cost_keys, hold_the_math_mode)
{
    static const char *const modes[] = {" math=default ", " math=tensor_op ",
                                        " math=tf32 "};
    struct planning s;
    struct cost_query q;
    size_t i = 0;
    write_fire("quagga");
    open(&s, NULL);
    const struct planner_model *model = s.planner->model;
    while (model->candidates[i].reason || !model->candidates[i].impl)
        i++;
    for (int m = 0; m < (int)ARRAY_LENGTH(modes); m++) {
        s.planner->math = m;
        cr_assert_eq(cost_query_run(&q, s.planner, &model->candidates[i], &s.err),
                     STRATA_OK);
        cr_expect(strstr(q.key, modes[m]), "%s", q.key);
        free(q.key);
    }
    planning_close(&s);
}

Test(cost_keys, hold_no_names_and_equal_layers_share_them)
{
    struct planning s;
    char *first[1000];
    size_t n = 0;
    for (int round = 0; round < 2; round++) {
        write_fire(round ? "zebra" : "quagga");
        open(&s, NULL);
        const struct planner_model *m = s.planner->model;
        size_t usable = 0, shared = 0;
        for (size_t i = 0; i < m->n_candidates; i++) {
            struct cost_query q;
            if (m->candidates[i].reason || !m->candidates[i].impl)
                continue;
            cr_assert_eq(cost_query_run(&q, s.planner, &m->candidates[i], &s.err),
                         STRATA_OK);
            cr_assert_null(strstr(q.key, "zebra"), "%s", q.key);
            cr_assert_null(strstr(q.key, "quagga"), "%s", q.key);
            cr_assert_lt(usable, ARRAY_LENGTH(first));
            if (round == 0)
                first[usable] = duplicate(q.key, NULL);
            else
                cr_assert_str_eq(q.key, first[usable]);
            for (size_t k = 0; k < usable && round == 0; k++)
                shared += strcmp(first[k], first[usable]) == 0;
            usable++;
            cost_query_free(&q);
        }
        cr_assert(round == 1 || shared > 0, "layers b and d are equal");
        n = usable;
        planning_close(&s);
    }
    while (n > 0)
        free(first[--n]);
}

/* Which an impl reads but once from memory; both ports are timed with one. */
Test(cost_keys, say_which_ports_read_one_tensor)
{
    struct planning s;
    struct cost_table t;
    size_t sums = 0;
    write_sums();
    open(&s, NULL);
    record(&s, &t);
    for (size_t i = 0; i < t.n; i++) {
        const char *key = t.entries[i].key;
        const bool one = strstr(key, " in1=in0 ") != NULL;
        cr_expect(!one || strstr(key, "op:sum"), "%s", key);
        cr_expect(!strstr(key, "op:product") || !one, "%s", key);
        sums += one;
    }
    cr_expect_gt(sums, 0);
    cost_table_free(&t);
    planning_close(&s);
}

static bool lie_alike(const struct planning *s, int tensor, int a, int b)
{
    strata_desc x, y;
    return planner_desc(&x, s->network, tensor, a, NULL) == STRATA_OK &&
           planner_desc(&y, s->network, tensor, b, NULL) == STRATA_OK &&
           strata_desc_equal(&x, &y);
}

/* Of one impl and row. */
static void compare_keys(struct planning *s, const struct planner_candidate *a,
                         const struct planner_candidate *b, size_t *alike)
{
    const struct planner_node *n = &s->planner->nodes[a->node];
    struct cost_query x, y;
    if (a->impl != b->impl || a->row != b->row || a->fused != b->fused ||
        a->homed != b->homed)
        return;
    const bool same = lie_alike(s, n->in[0], a->in_formats[0], b->in_formats[0]) &&
                      lie_alike(s, n->out[0], a->out_formats[0], b->out_formats[0]);
    cr_assert_eq(cost_query_run(&x, s->planner, a, &s->err), STRATA_OK);
    cr_assert_eq(cost_query_run(&y, s->planner, b, &s->err), STRATA_OK);
    cr_expect_eq(strcmp(x.key, y.key) == 0, same, "%s\n%s", x.key, y.key);
    *alike += same;
    cost_query_free(&x);
    cost_query_free(&y);
}

/* Channels last with channels that need no pads is one memory by two names. */
Test(cost_keys, tell_formats_apart_where_memory_differs)
{
    static const char *const fp16[] = {"build.precision=fp16"};
    struct planning s;
    size_t alike = 0;
    FILE *f = fopen(net, "w");
    cr_assert_not_null(f);
    fputs("[network]\nformat = 1\noutputs = y\n[input x]\nshape = 1 x 16 x 5 x 6\n"
          "[layer y]\ntype = Activation\nkind = relu\n",
          f);
    fclose(f);
    cr_assert_eq(load(&s, NULL, fp16, 1), STRATA_OK, "%s", s.err.message);
    cr_assert_eq(planning_model(&s), STRATA_OK, "%s", s.err.message);
    const struct planner_model *m = s.planner->model;
    for (size_t i = 0; i < m->n_candidates; i++)
        for (size_t k = 0; k < i; k++)
            if (m->candidates[i].impl && !m->candidates[i].reason &&
                m->candidates[k].impl && !m->candidates[k].reason)
                compare_keys(&s, &m->candidates[i], &m->candidates[k], &alike);
    cr_expect_gt(alike, 0);
    planning_close(&s);
}

/* Where the environment has teams sleep, every region costs their waking. */
Test(cost_keys, costs_of_teams_that_sleep_are_kept_apart)
{
    static const struct {
        const char *policy;
        bool apart;
    } cases[] = {{"active", false}, {"passive", true}};
    const struct device_properties host = planning_host().properties;
    const struct device_properties cuda = planning_cuda().properties;
    char *path[2][3];
    setenv("XDG_CACHE_HOME", in_scratch("cache"), 1);
    unsetenv("GOMP_SPINCOUNT");
    unsetenv("OMP_WAIT_POLICY");
    for (int i = 0; i <= (int)ARRAY_LENGTH(cases); i++) {
        cr_assert_eq(cost_cache_path(&path[0][i], &host, NULL), STRATA_OK);
        cr_assert_eq(cost_cache_path(&path[1][i], &cuda, NULL), STRATA_OK);
        if (i < (int)ARRAY_LENGTH(cases))
            setenv("OMP_WAIT_POLICY", cases[i].policy, 1);
    }
    for (int i = 1; i <= (int)ARRAY_LENGTH(cases); i++) {
        cr_expect_eq(strcmp(path[0][0], path[0][i]) != 0, cases[i - 1].apart, "%s",
                     path[0][i]);
        cr_expect_str_eq(path[1][0], path[1][i], "of the host alone");
    }
    for (int i = 0; i < 6; i++)
        free(path[i % 2][i / 2]);
}
