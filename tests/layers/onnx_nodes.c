/* SPDX-License-Identifier: Apache-2.0
 *
 * ONNX's own cases of single operators (Debian's libonnx-testdata), through every host
 * impl and layout of the layer that each maps to (tests/layers/onnx_map.c), in the dtypes
 * that the case has. A case passes, or tests/layers/onnx_left_out.txt says why its
 * operator or itself is not mapped. STRATA_ONNX_NODES names another folder of cases,
 * STRATA_ONNX_CASE one case alone.
 */
#include "tests/layers/onnx_map.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/format.h"

#define FOLDER "/usr/share/libonnx-testdata/data/node"
#define MOST_LAYERS 64

struct node_case {
    const char *name;
    struct pb_model m;
    struct pb_tensor in[PB_PORTS], out[PB_PORTS]; /* of the node, by its ports */
    bool known_in[PB_PORTS], known_out[PB_PORTS];
};

static struct count {
    char layer[32];
    int passed, left_out;
} counts[MOST_LAYERS];

static struct count *count_of(const char *layer)
{
    size_t i = 0;
    while (i < MOST_LAYERS - 1 && counts[i].layer[0] &&
           strcmp(counts[i].layer, layer) != 0)
        i++;
    snprintf(counts[i].layer, sizeof counts[i].layer, "%s", layer);
    return &counts[i];
}

/* ---- reading ------------------------------------------------------------------- */

static int port_named(char names[PB_PORTS][PB_NAME], int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

/* Tensors of the graph's inputs in order, each at the port of its name. */
static bool read_inputs(struct node_case *c, const char *folder)
{
    char path[512];
    for (int g = 0; g < c->m.n_graph_in; g++) {
        const int port = port_named(c->m.in, c->m.n_in, c->m.graph_in[g]);
        if (port < 0)
            continue;
        snprintf(path, sizeof path, "%s/%s/test_data_set_0/input_%d.pb", folder, c->name,
                 g);
        c->known_in[port] = pb_read_tensor(&c->in[port], path);
        for (int i = port + 1; i < c->m.n_in && c->known_in[port]; i++)
            if (strcmp(c->m.in[i], c->m.in[port]) == 0) { /* one tensor, twice */
                c->known_in[i] = pb_read_tensor(&c->in[i], path);
            }
        if (!c->known_in[port])
            return false;
    }
    return true;
}

static bool read_outputs(struct node_case *c, const char *folder)
{
    char path[512];
    for (int i = 0, file = 0; i < c->m.n_out; i++) {
        if (!c->m.out[i][0])
            continue;
        snprintf(path, sizeof path, "%s/%s/test_data_set_0/output_%d.pb", folder, c->name,
                 file++);
        c->known_out[i] = pb_read_tensor(&c->out[i], path);
        if (!c->known_out[i])
            return false;
    }
    return true;
}

/* NULL, or why it cannot be a case here. */
static const char *read_case(struct node_case *c, const char *folder)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s/model.onnx", folder, c->name);
    if (!pb_read_model(&c->m, path))
        return "a model beyond what the tests read";
    if (c->m.nodes != 1)
        return "several nodes";
    return read_inputs(c, folder) && read_outputs(c, folder) ? NULL
                                                             : "not all are tensors";
}

static void free_case(struct node_case *c)
{
    for (int i = 0; i < PB_PORTS; i++) {
        pb_free_tensor(&c->in[i]);
        pb_free_tensor(&c->out[i]);
    }
}

/* ---- comparing ----------------------------------------------------------------- */

/* ONNX computes most of its cases with NumPy in their own type. */
static double tolerance(const struct node_case *c, int32_t dtype)
{
    if (strcmp(c->m.op, "RoiAlign") == 0) /* which is written with four digits */
        return 1e-4;
    return dtype == STRATA_FP64                           ? 1e-7
           : dtype == STRATA_FP16 || dtype == STRATA_BF16 ? 4e-3
           : dtype == STRATA_E4M3 || dtype == STRATA_E5M2 ? 0
                                                          : 1e-5;
}

/* Equal but for dims of 1: ONNX's scalars are one element here. */
static bool same_shape(const strata_tensor *t, const struct harness_shape *want)
{
    int i = 0, k = 0;
    for (;;) {
        while (i < t->rank && t->dims[i] == 1)
            i++;
        while (k < want->rank && want->dims[k] == 1)
            k++;
        if (i == t->rank || k == want->rank)
            return i == t->rank && k == want->rank;
        if (t->dims[i++] != want->dims[k++])
            return false;
    }
}

static bool differs(const struct node_case *c, const void *got, int32_t dtype,
                    const struct pb_tensor *want, double largest, int64_t i)
{
    if (!number_is_real(dtype) && !number_is_real(want->dtype))
        return !number_same(dtype, got, want->data, i);
    const double x = number_of(got, dtype, i), y = number_of(want->data, want->dtype, i);
    if (isnan(x) || isnan(y) || isinf(x) || isinf(y))
        return !(isnan(x) && isnan(y)) && x != y;
    return !(fabs(x - y) <= tolerance(c, want->dtype) * largest);
}

/* Whether output `got` is what the case says; told if not, on stderr: an error in
 * Criterion's log fails the program, and the case may be listed. */
static bool is_right(const struct node_case *c, const char *impl, const strata_tensor *t,
                     const void *got, const struct pb_tensor *want)
{
    double largest = 1e-6;
    for (int64_t i = 0; i < want->count; i++) {
        const double x = fabs(number_of(want->data, want->dtype, i));
        largest = isfinite(x) ? fmax(largest, x) : largest;
    }
    for (int64_t i = 0; i < want->count; i++)
        if (differs(c, got, t->dtype, want, largest, i)) {
            fprintf(stderr, "# %s (%s), impl %s: element %lld is %.9g, should be %.9g\n",
                    c->name, c->m.op, impl, (long long)i, number_of(got, t->dtype, i),
                    number_of(want->data, want->dtype, i));
            return false;
        }
    return true;
}

/* ---- running ------------------------------------------------------------------- */

struct attempt {
    const struct node_case *c;
    const struct onnx_job *j;
    struct harness_node n;
    const void *in[HARNESS_INPUTS], *weight[HARNESS_WEIGHTS];
    void *out[HARNESS_OUTPUTS], *made[HARNESS_WEIGHTS];
    int runs, failures;
};

/* The dtype in which a tensor lies, or -1 if it cannot. */
static int32_t stored(const strata_tensor *t, uint64_t mask)
{
    return harness_fits(t, mask) ? format_at(__builtin_ctzll(mask))->dtype : -1;
}

/* Formats of the case's own dtypes alone: roundings to others would be told as errors. */
static bool is_own(const struct attempt *a, const struct harness_formats *f)
{
    for (int i = 0; i < a->n.node.n_in; i++)
        if (a->n.in[i].rank && stored(&a->n.in[i], f->in[i]) != a->n.in[i].dtype)
            return false;
    for (int o = 0; o < a->n.node.n_out; o++) {
        const struct pb_tensor *want =
            a->j->out[o] >= 0 ? a->j->expected[a->j->out[o]] : NULL;
        const int32_t dtype = stored(&a->n.out[o], f->out[o]);
        if (dtype < 0 || (want && number_is_any(want->dtype) && dtype != want->dtype))
            return false;
    }
    return true;
}

/* Rows that the layer fills beyond what the operator gives: the second output says how
 * many count. */
static bool has_rows(const struct attempt *a, const struct pb_tensor *want)
{
    const int64_t rows = want->shape.rank ? want->shape.dims[0] : 1;
    return number_of(a->out[1], a->n.out[1].dtype, 0) == (double)rows &&
           a->n.out[0].count >= want->count;
}

static void run_combination(struct attempt *a, const struct registry_impl *impl, int row,
                            const struct harness_formats *f)
{
    const int status = harness_run(&a->n, impl, row, f, a->in, a->weight, NULL, a->out);
    if (a->n.vetoed)
        return;
    a->runs++;
    bool right = status == STRATA_OK;
    if (!right)
        fprintf(stderr, "# %s (%s), impl %s: %s\n", a->c->name, a->c->m.op,
                impl->impl.name, a->n.err.message);
    for (int o = 0; o < a->n.node.n_out && right; o++) {
        const struct pb_tensor *want =
            a->j->out[o] >= 0 ? a->j->expected[a->j->out[o]] : NULL;
        if (!want)
            continue;
        right =
            a->j->trimmed ? has_rows(a, want) : same_shape(&a->n.out[o], &want->shape);
        if (!right)
            fprintf(stderr, "# %s (%s): output %d has another shape\n", a->c->name,
                    a->c->m.op, o);
        right = right && is_right(a->c, impl->impl.name, &a->n.out[o], a->out[o], want);
    }
    a->failures += !right;
}

static void run_impls(struct attempt *a)
{
    const struct registry_layer *layer = a->n.layer;
    struct harness_formats f;
    for (size_t i = 0; i < layer->n_impls; i++) {
        const struct registry_impl *impl = &layer->impls[i];
        if (impl->impl.device != STRATA_HOST)
            continue;
        for (uint32_t r = 0; r < impl->impl.rows.n; r++)
            for (int64_t k = 0; harness_combination(&f, &impl->rows[r], &a->n, k); k++)
                if (is_own(a, &f))
                    run_combination(a, impl, (int)r, &f);
    }
}

/* A weight's values as the layer's dtype has them. */
static bool take_weight(struct attempt *a, int i, const struct pb_tensor *t)
{
    const bool real = number_is_real(t->dtype);
    a->weight[i] = t->data;
    if (real == number_is_real(a->n.weight[i].dtype))
        return true;
    double *reals = malloc((size_t)t->count * VALUE_SIZE + 1);
    int64_t *wholes = a->made[i] = malloc((size_t)t->count * VALUE_SIZE + 1);
    if (reals && wholes) {
        number_to_reals(reals, t->data, t->dtype, t->count);
        number_from_reals(wholes, a->n.weight[i].dtype, reals, t->count);
    }
    free(reals);
    a->weight[i] = wholes;
    return wholes;
}

static bool make_room(struct attempt *a)
{
    bool made = true;
    for (int i = 0; i < a->j->n_weights; i++)
        if (a->j->weight[i])
            made &= take_weight(a, i, a->j->weight[i]);
    for (int o = 0; o < a->n.node.n_out; o++)
        made &= (a->out[o] = calloc((size_t)a->n.out[o].count + 1, VALUE_SIZE)) != NULL;
    return made;
}

static struct harness_shape shape_of(const struct pb_tensor *t)
{
    struct harness_shape s = t ? t->shape : (struct harness_shape){0};
    if (t && s.rank == 0)
        s = (struct harness_shape){1, {1}};
    return s;
}

/* NULL: right; else what was wrong. */
static const char *run_job(const struct node_case *c, const struct onnx_job *j,
                           const struct registry_layer *layer)
{
    static char why[256];
    struct harness_shape in[HARNESS_INPUTS], weight[HARNESS_WEIGHTS] = {{0}};
    int32_t in_dtype[HARNESS_INPUTS] = {0}, weight_dtype[HARNESS_WEIGHTS] = {0};
    struct attempt a = {
        .c = c, .j = j, .n = {.in_dtype = in_dtype, .weight_dtype = weight_dtype}};
    unsigned absent = ~0u;
    for (int i = 0; i < j->n_in; i++) {
        in[i] = shape_of(j->in[i]);
        in_dtype[i] = j->in[i] ? j->in[i]->dtype : STRATA_FP32;
        a.in[i] = j->in[i] ? j->in[i]->data : NULL;
    }
    for (int i = 0; i < j->n_weights; i++)
        if (j->weight[i]) {
            weight[i] = shape_of(j->weight[i]);
            weight_dtype[i] = j->weight[i]->dtype;
            absent &= ~(1u << i);
        }
    int status = harness_open(&a.n, layer, j->attrs, in, j->n_in, weight, absent);
    if (status == STRATA_OK && !make_room(&a))
        status = error_no_memory(&a.n.err, 0, "a case");
    if (status == STRATA_OK)
        run_impls(&a);
    snprintf(why, sizeof why, "%s {%.80s}: %.120s", j->layer, j->attrs,
             status != STRATA_OK ? a.n.err.message
             : a.runs == 0       ? "no impl takes its types"
                                 : "wrong");
    for (int i = 0; i < HARNESS_WEIGHTS; i++)
        free(a.made[i]);
    for (int o = 0; o < HARNESS_OUTPUTS; o++)
        free(a.out[o]);
    harness_close(&a.n);
    return status == STRATA_OK && a.runs > 0 && a.failures == 0 ? NULL : why;
}

/* Types that there are not, of what is used. */
static const char *missing_type(const struct onnx_job *j)
{
    bool missing = false;
    for (int i = 0; i < j->n_in; i++)
        missing |= j->in[i] && j->in[i]->dtype < 0;
    for (int i = 0; i < j->n_weights; i++)
        missing |= j->weight[i] && j->weight[i]->dtype < 0;
    for (int o = 0; o < HARNESS_OUTPUTS; o++)
        missing |=
            j->out[o] >= 0 && j->expected[j->out[o]] && j->expected[j->out[o]]->dtype < 0;
    return missing ? "a type that there is not" : NULL;
}

/* NULL: passed; else why not. *wrong: it is mapped, and does not agree. */
static const char *run_case(const struct node_case *c, strata_registry *registry,
                            char layer_name[32], bool *wrong)
{
    static char missing[96];
    const int jobs = onnx_map_each(c->m.op) ? c->m.n_out : 1;
    const char *why = NULL;
    for (int output = 0; output < jobs && !why; output++) {
        struct onnx_job j = {.m = &c->m, .output = output};
        const struct registry_layer *layer;
        strata_error err = {0};
        char name[80];
        for (int i = 0; i < PB_PORTS; i++) {
            j.given[i] = c->known_in[i] ? &c->in[i] : NULL;
            j.expected[i] = c->known_out[i] ? &c->out[i] : NULL;
        }
        if (!onnx_map(&j))
            return "no layer";
        snprintf(layer_name, 32, "%s", j.layer);
        why = missing_type(&j);
        why = why ? why : j.reason;
        snprintf(name, sizeof name, "core::%s", j.layer);
        if (why)
            return why;
        if (registry_find(registry, name, &layer, &err) != STRATA_OK) {
            snprintf(missing, sizeof missing, "no layer %s", j.layer);
            return missing;
        }
        why = run_job(c, &j, layer);
        *wrong = why != NULL;
    }
    return why;
}

/* ---- what is left out ---------------------------------------------------------- */

/* Whether the list has a line that begins with the word. */
static bool is_listed(const char *list, const char *word)
{
    const size_t n = strlen(word);
    for (const char *line = list; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, word, n) == 0 && line[n] == '\t')
            return true;
        if (!*line)
            break;
    }
    return false;
}

static char *read_list(void)
{
    char path[512];
    const char *source = getenv("srcdir");
    snprintf(path, sizeof path, "%s/tests/layers/onnx_left_out.txt",
             source ? source : ".");
    FILE *file = fopen(path, "r");
    char *text = calloc(1, 1 << 16);
    if (file && text)
        text[fread(text, 1, (1 << 16) - 1, file)] = '\0';
    if (file)
        fclose(file);
    cr_assert(file && text, "%s: cannot be read", path);
    return text;
}

static void judge(struct node_case *c, const char *folder, strata_registry *registry,
                  const char *list)
{
    char layer[32] = "-";
    bool wrong = false;
    const char *why = read_case(c, folder);
    const bool single = !why || strcmp(why, "several nodes") != 0;
    if (!why)
        why = run_case(c, registry, layer, &wrong);
    struct count *count = count_of(single ? layer : "(several nodes)");
    const bool listed = is_listed(list, c->m.op) || is_listed(list, c->name);
    *(why ? &count->left_out : &count->passed) += 1;
    if (why && single)
        fprintf(stderr, "# %s (%s): %s\n", c->name, c->m.op, why);
    const bool waits = why && strncmp(why, "no layer ", 9) == 0;
    cr_expect(!why || !single || listed || waits, "%s (%s): %s", c->name, c->m.op, why);
    cr_expect(why || !is_listed(list, c->name), "%s is listed, and passes", c->name);
}

/* ---- the test ------------------------------------------------------------------ */

TestSuite(onnx_nodes, .timeout = 900);

Test(onnx_nodes, every_case_passes_or_is_listed)
{
    const char *folder = getenv("STRATA_ONNX_NODES"), *only = getenv("STRATA_ONNX_CASE");
    struct dirent **names = NULL;
    strata_error err = {0};
    folder = folder ? folder : FOLDER;
    const int n = scandir(folder, &names, NULL, alphasort);
    if (n < 0)
        cr_skip_test("%s is absent (libonnx-testdata); STRATA_ONNX_NODES names another",
                     folder);
    strata_registry *registry = harness_registry(&err);
    cr_assert(registry, "%s", err.message);
    char *list = read_list();
    struct node_case *c = malloc(sizeof *c);
    for (int i = 0; i < n && c; i++) {
        const char *name = names[i]->d_name;
        memset(c, 0, sizeof *c);
        c->name = name;
        if (strncmp(name, "test_", 5) == 0 && (!only || strcmp(only, name) == 0))
            judge(c, folder, registry, list);
        free_case(c);
        free(names[i]);
    }
    free(c);
    free(names);
    free(list);
    int passed = 0;
    for (size_t i = 0; i < MOST_LAYERS && counts[i].layer[0]; i++) {
        fprintf(stderr, "# %-20s %4d cases passed, %4d left out\n", counts[i].layer,
                counts[i].passed, counts[i].left_out);
        passed += counts[i].passed;
    }
    fprintf(stderr, "# %d cases passed\n", passed);
    cr_expect(only || passed >= 100, "only %d cases passed", passed);
    strata_registry_destroy(registry);
}
