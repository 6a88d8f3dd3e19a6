/* SPDX-License-Identifier: Apache-2.0
 *
 * Models that leave the batch free: where it stays a symbol of the network, the network
 * with any value is the model with that value; else the report says why not.
 */
#include "network/import/symbols/memo.h"
#include "tests/network/import/free_model.h"
#include "tests/network/import/planned.h"

/* ---- symbols that stay ---------------------------------------------------------------
 */

/* text: with '@' for the batch. says: in the network's text. rows: of the outputs are
 * those of the inputs, each by itself. */
static const struct {
    const char *name, *text, *says;
    bool rows;
} kept[] = {
    {"element by element", "input x f @x4\nnode Relu x -> y\noutput y\n",
     "[input x]\nshape = batch x 4\n\n[profile]\nbatch = 1\n", true},
    {"rows by a computed shape",
     "input x f @x4x3\nnode Shape x -> s start=0 end=1\ninit k i 1 12\n"
     "node Concat s,k -> t axis=0\nnode Reshape x,t -> r\nnode Softmax r -> y axis=1\n"
     "output y\n",
     "shape = 0, 12\n", true},
    {"rows counted twice",
     "input x f @x4x3\nnode Shape x -> s start=0 end=1\ninit two i 1 2\n"
     "node Mul s,two -> t\ninit k i 1 6\nnode Concat t,k -> u axis=0\n"
     "node Reshape x,u -> r\nnode Softmax r -> p axis=1\n"
     "node Concat s,l -> v axis=0\ninit l i 2 4 3\nnode Reshape p,v -> y\noutput y\n",
     "shape = -1, 6\n", true},
    {"a reshape that says -1 itself",
     "input x f @x4x3\nnode Shape x -> s start=0 end=1\ninit k i 1 -1\n"
     "node Concat s,k -> t axis=0\nnode Reshape x,t -> r\nnode Softmax r -> y axis=1\n"
     "output y\n",
     "shape = 0, -1\n", true},
    {"batches on both sides",
     "input x f @x4\nnode Transpose x -> t perm=[1,0]\nnode MatMul x,t -> p\n"
     "node Shape p -> s start=0 end=1\ninit one i 1 1\nnode Concat one,one,s,s -> u "
     "axis=0\nnode Reshape p,u -> r\nnode Sigmoid r -> y\noutput y\n",
     "shape = 1, 1, batch, -1\n", false},
    {"a token for each row",
     "input x f @x2x3\ninit c f 1x1x3 5 6 7\nnode Shape x -> s start=0 end=1\n"
     "init k i 2 1 3\nnode Concat s,k -> t axis=0\nnode Expand c,t -> e\n"
     "node Concat e,x -> y axis=1\noutput y\n",
     "type = Expand\nshape = batch, 1, 3\n", true},
    {"an expand of what is computed",
     "input x f @x3\nnode Shape x -> s start=0 end=1\ninit k i 2 2 3\n"
     "node Concat s,k -> t axis=0\ninit o i 1 1\nnode Unsqueeze x,o -> u\n"
     "node Expand u,t -> y\noutput y\n",
     "type = Expand\nshape = 1, 2, 3\n", true},
    {"a constant that is stretched anyway",
     "input x f @x3\ninit c f 1x3 1 2 3\nnode Shape x -> t\nnode Expand c,t -> e\n"
     "node Max e,x -> y\noutput y\n",
     "[layer e]\ntype = Constant\nweights = w:e\n\n[layer y]\ntype = ElementWise\n"
     "inputs = e, x\n",
     true},
    {"elements that are picked in order",
     "input x f @x4\ninit m i 1 -1\nnode Reshape x,m -> l\nnode Size x -> n\n"
     "init z i - 0\ninit o i - 1\nnode Range z,n,o -> r\ninit k i 3 -1 2 2\n"
     "node Reshape r,k -> q\nnode Gather l,q -> g\nnode Exp g -> y\noutput y\n",
     "shape = -1, 2, 2\n", true},
    {"rows that are picked in order",
     "input x f @x4\ninit m i 2 -1 2\nnode Reshape x,m -> l\ninit d i 1 1\n"
     "node Shape l -> h end=1\nnode Squeeze h -> n\ninit z i - 0\ninit o i - 1\n"
     "node Range z,n,o -> r\ninit k i 3 -1 1 2\nnode Reshape r,k -> q\n"
     "node Gather l,q -> g\nnode Exp g -> y\noutput y\n",
     "shape = -1, 1, 2, 2\n", true},
    {"two inputs", "input x f @x3\ninput z f @x3\nnode Sub x,z -> y\noutput y\n",
     "[input z]\nshape = batch x 3\n", true},
    {"an input without it", "input x f @x3\ninput z f 1x3\nnode Mul x,z -> y\noutput y\n",
     "[input z]\nshape = 1x3\n", false},
    {"batches behind sequences, around a product",
     "input x f @x3x2\ninit w f 2x2 1 2 3 4\nnode Transpose x -> t perm=[1,0,2]\n"
     "node MatMul t,w -> p\nnode Transpose p -> y perm=[1,0,2]\noutput y\n",
     "[layer y]\ntype = MatrixMultiply\nweights = w:y\n", true},
    {"a token, where a batch of 1 hides more",
     "input x f @x4\ninit k i 1 0\nnode Unsqueeze x,k -> u\n"
     "node Transpose u -> t perm=[1,0,2]\nnode Shape x -> s start=0 end=1\n"
     "init l i 1 4\nnode Concat s,l -> v axis=0\nnode Reshape t,v -> r\n"
     "init c f 1x4 5 6 7 8\nnode Expand c,v -> e\nnode Concat e,r -> y axis=1\n"
     "output y\n",
     "type = Expand\nshape = batch, 4\n", true},
    {"weights of int8, a scale each filter",
     "input x f @x2x3x3\ninit q c 3x2x1x1 1 -2 3 -4 5 -128\ninit s f 3 0.5 0.25 2\n"
     "node DequantizeLinear q,s -> w axis=0\nnode Conv x,w -> y\noutput y\n",
     "shape = batch x 2 x 3 x 3\n\n[profile]\nbatch = 1\n", true},
    {"a matrix of int8 of one scale",
     "input x f @x5x2\ninit q c 2x3 1 -2 3 -4 5 -128\ninit s f - 0.5\n"
     "node DequantizeLinear q,s -> w\nnode MatMul x,w -> y\noutput y\n",
     "shape = batch x 5 x 2\n\n[profile]\nbatch = 1\n", true},
    {"what a batch of 1 alone would hide",
     "input x f @x4\ninit k i 1 0\nnode Unsqueeze x,k -> u\n"
     "node Transpose u -> t perm=[1,0,2]\nnode Shape x -> s start=0 end=1\n"
     "init l i 1 4\nnode Concat s,l -> v axis=0\nnode Reshape t,v -> r\n"
     "node Exp r -> y\noutput y\n",
     "batch = 1", true},
};

static void run(const struct imported *x, unsigned seed)
{
    strata_error err = {0};
    for (size_t i = 0; i < x->network->n_inputs; i++) {
        int64_t n;
        float *in = imported_data(x, (int)i, &n);
        for (int64_t k = 0; k < n; k++)
            in[k] = (float)((k * 37 + (int64_t)i * 11 + seed) % 29) / 8 - 1;
    }
    cr_assert_eq(strata_context_run(x->context, &err), STRATA_OK, "%s", err.message);
}

/* The same network with 3 as the symbol's value. */
static void set_three(struct imported *x)
{
    char *one = strstr(x->text, "batch = 1\n");
    cr_assert_not_null(one);
    one[strlen("batch = ")] = '3';
}

static void open_import(struct imported *x, const struct free_model *m, const char *name)
{
    strata_error err = {0};
    cr_assert_eq(imported_open(x, m->onnx, m->registry, NULL, &err), STRATA_OK, "%s: %s",
                 name, err.message);
}

/* The text read anew. */
static void reopen(struct imported *x, const struct free_model *m, const char *name)
{
    strata_error err = {0};
    const struct network_memory memory = {.text = x->text,
                                          .text_size = x->text_size,
                                          .weights = x->weights,
                                          .weights_size = x->weights_size};
    strata_context_destroy(x->context);
    strata_engine_destroy(x->engine);
    strata_network_destroy(x->network);
    x->context = NULL;
    x->engine = NULL;
    cr_assert_eq(network_parse(&x->network, &memory, name, m->registry, &err), STRATA_OK,
                 "%s: %s\n%s", name, err.message, x->text);
    cr_assert_eq(strata_engine_build(&x->engine, x->handle, x->network, &err), STRATA_OK,
                 "%s: %s", name, err.message);
    cr_assert_eq(strata_context_create(&x->context, x->engine, x->handle, &err),
                 STRATA_OK, "%s: %s", name, err.message);
}

static void expect_equal(const struct imported *x, const struct imported *y,
                         const char *name)
{
    int64_t n, m;
    const int first = (int)x->network->n_inputs;
    const float *found = imported_data(x, first, &n),
                *wanted = imported_data(y, first, &m);
    cr_assert_eq(n, m, "%s: %lld elements, should be %lld", name, (long long)n,
                 (long long)m);
    for (int64_t i = 0; i < n; i++)
        cr_expect_float_eq(found[i], wanted[i], 1e-6, "%s: element %lld is %g, not %g",
                           name, (long long)i, (double)found[i], (double)wanted[i]);
}

/* Each row of three, by the network of one row. */
static void expect_rows(const struct imported *three, const struct imported *one,
                        const char *name)
{
    const int n_in = (int)three->network->n_inputs;
    for (int row = 0; row < 3; row++) {
        strata_error err = {0};
        int64_t n, all;
        for (int i = 0; i < n_in; i++) {
            float *in = imported_data(one, i, &n);
            memcpy(in, imported_data(three, i, &all) + row * n, (size_t)n * sizeof *in);
        }
        cr_assert_eq(strata_context_run(one->context, &err), STRATA_OK, "%s",
                     err.message);
        const float *found = imported_data(one, n_in, &n);
        const float *wanted = imported_data(three, n_in, &all) + row * n;
        cr_assert_eq(all, 3 * n, "%s", name);
        for (int64_t i = 0; i < n; i++)
            cr_expect_float_eq(found[i], wanted[i], 1e-6, "%s: row %d, element %lld",
                               name, row, (long long)i);
    }
}

Test(symbols, kept)
{
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        const char *name = kept[i].name, *text = kept[i].text;
        struct free_model free_model = free_model_open(text, "batch", "", "");
        struct free_model fixed = free_model_open(text, "3", "", "");
        struct imported one, three, wanted;
        open_import(&one, &free_model, name);
        open_import(&three, &free_model, name);
        open_import(&wanted, &fixed, name);
        cr_expect_str_eq(one.im->symbols[0].reason, "", "%s: %s", name,
                         one.im->symbols[0].reason);
        cr_expect_not_null(strstr(one.text, kept[i].says), "%s: no '%s' in:\n%s", name,
                           kept[i].says, one.text);
        set_three(&three);
        reopen(&three, &free_model, name);
        run(&three, 1);
        run(&wanted, 1);
        expect_equal(&three, &wanted, name);
        if (kept[i].rows)
            expect_rows(&three, &one, name);
        imported_free(&one);
        imported_free(&three);
        imported_free(&wanted);
        free_model_close(&free_model);
        free_model_close(&fixed);
    }
}

/* ---- symbols that do not, and options ------------------------------------------------
 */

#define TOKEN                                                                            \
    "input x f batchx2x3\ninit c f 1x1x3 5 6 7\nnode Shape x -> s start=0 end=1\n"       \
    "init k i 2 1 3\nnode Concat s,k -> t axis=0\nnode Expand c,t -> e\n"                \
    "node Concat e,x -> y axis=1\noutput y\n"

/* symbol with up to four values: an option; 0: none. reason NULL: the symbol stays. */
static const struct {
    const char *name, *text, *symbol;
    int64_t values[4];
    const char *says, *reason;
} cases[] = {
    {"a dim without a name",
     "input x f ?x4\nnode Relu x -> y\noutput y\n",
     NULL,
     {0},
     "shape = N x 4\n\n[profile]\nN = 1\n",
     NULL},
    {"it, given",
     "input x f ?x4\nnode Relu x -> y\noutput y\n",
     "N",
     {4},
     "[profile]\nN = 4\n",
     NULL},
    {"a name that none can be",
     "input x f +bx4\nnode Relu x -> y\noutput y\n",
     NULL,
     {0},
     "shape = N x 4\n\n[profile]\nN = 1\n",
     NULL},
    {"a name with what names have not",
     "input x f s.0x4\nnode Relu x -> y\noutput y\n",
     "s.0",
     {2},
     "shape = s_0 x 4\n\n[profile]\ns_0 = 2\n",
     NULL},
    {"several values",
     "input x f batchx4\nnode Relu x -> y\noutput y\n",
     "batch",
     {32, 1, 8},
     "[profile]\nbatch = 1, 8, 32\n",
     NULL},
    {"a list of its own",
     "input x f batch\nnode Shape x -> s\ninit z i - 0\n"
     "init d i - 1\nnode Squeeze s -> n\nnode Range z,n,d -> r\nnode Cast r -> c to=1\n"
     "node Add x,c -> y\noutput y\n",
     NULL,
     {0},
     "shape = 1\n",
     "holds it in value"},
    {"a batch that the model has fixed",
     "input x f batchx4\ninit k i 2 2 2\nnode Reshape x,k -> r\nnode Relu r -> y\n"
     "output y\n",
     NULL,
     {0},
     "shape = 1x4\n",
     "with 4 of it: node 'n"},
    {"an expand, several values",
     TOKEN,
     "batch",
     {1, 2},
     "type = Expand\nshape = batch, 1, 3\n",
     NULL},
    {"a transpose of the batch, several values",
     "input x f batchx2x3\nnode Transpose x -> t perm=[1,0,2]\nnode Relu t -> y\n"
     "output y\n",
     "batch",
     {1, 4},
     "[profile]\nbatch = 1, 4\n",
     NULL},
    {"a transpose of the batch that is undone, several values",
     "input x f batchx2x3\ninit w f 3x2 1 2 3 4 5 6\nnode Transpose x -> t perm=[1,0,2]\n"
     "node MatMul t,w -> p\nnode Transpose p -> y perm=[1,0,2]\noutput y\n",
     "batch",
     {1, 4},
     "[profile]\nbatch = 1, 4\n",
     NULL},
    {"a sum of the batch, several values",
     "input x f batchx3\ninit a i 1 0\nnode ReduceSum x,a -> y keepdims=1\noutput y\n",
     "batch",
     {1, 4},
     "[profile]\nbatch = 1, 4\n",
     NULL},
    {"a sum of the batch",
     "input x f batchx3\ninit a i 1 0\nnode ReduceSum x,a -> y keepdims=1\noutput y\n",
     "batch",
     {4},
     "shape = batch x 3\n\n[profile]\nbatch = 4\n",
     NULL},
    {"another dim of it",
     "input x f batchxbatch\nnode Relu x -> y\noutput y\n",
     NULL,
     {0},
     "shape = batch x batch\n",
     NULL},
    {"a branch for batches of one",
     "input x f batchx4\nnode Shape x -> s start=0 end=1\ninit o i 1 1\n"
     "node Equal s,o -> e\nnode Squeeze e -> c\nnode If c -> y then_branch={ "
     "else_branch={\n"
     "node Neg x -> a\noutput a\n}\nnode Exp x -> b\noutput b\n}\n"
     "output y\n",
     NULL,
     {0},
     "op = neg\n",
     "with batch = 1 the network is another"},
    {"no rows",
     "input x f batchx4\nnode Relu x -> y\noutput y\n",
     "batch",
     {-1},
     "shape = 0x4\n",
     "a batch has rows"},
};

static void expect_case(size_t i)
{
    struct free_model m = free_model_open(cases[i].text, "batch", "", "");
    struct import_symbol symbol = {.name = cases[i].symbol};
    for (; symbol.n < 4 && cases[i].values[symbol.n]; symbol.n++)
        symbol.values[symbol.n] =
            cases[i].values[symbol.n] < 0 ? 0 : cases[i].values[symbol.n];
    const struct import_options o = {.symbols = &symbol,
                                     .n_symbols = symbol.name != NULL};
    struct import *im = NULL;
    char *ini = NULL;
    size_t size;
    strata_error err = {0};
    cr_assert_eq(import_make(&im, m.onnx, m.registry, &o, &err), STRATA_OK, "%s: %s",
                 cases[i].name, err.message);
    cr_assert_eq(import_text(im, "weights", &ini, &size, &err), STRATA_OK, "%s",
                 err.message);
    cr_expect_not_null(strstr(ini, cases[i].says), "%s: no '%s' in:\n%s", cases[i].name,
                       cases[i].says, ini);
    const char *reason = im->symbols[0].reason;
    if (cases[i].reason)
        cr_expect(strstr(reason, cases[i].reason), "%s: '%s' is no '%s'", cases[i].name,
                  reason, cases[i].reason);
    else
        cr_expect_str_eq(reason, "", "%s", cases[i].name);
    cr_expect_eq(strstr(ini, "[profile]") == NULL, cases[i].reason != NULL, "%s:\n%s",
                 cases[i].name, ini);
    free(ini);
    import_free(im);
    free_model_close(&m);
}

Test(symbols, cases)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_case(i);
}

/* Dims that have no name have to be given, and are listed. */
Test(symbols, dims_without_a_name_are_refused)
{
    struct free_model m = free_model_open(
        "input x i batchxlengthx?\nnode Neg x -> y\noutput y\n", "", "", "");
    struct import *im = NULL;
    strata_error err = {0};
    cr_expect_eq(import_make(&im, m.onnx, m.registry, NULL, &err), STRATA_EUNSUPPORTED);
    cr_expect(strstr(err.message, "dim 2 of input 'x' is free"), "%s", err.message);
    cr_expect_null(strstr(err.message, "free dim 'batch'"), "%s", err.message);
    cr_expect_null(strstr(err.message, "free dim 'length'"), "%s", err.message);
    import_free(im);
    free_model_close(&m);
}

/* What does not hang on the batch is folded once, and the second import has its elements.
 */
Test(symbols, weights_are_folded_once)
{
    struct free_model m =
        free_model_open("input x f batchx3\ninit w f 3x3 1 2 3 4 5 6 7 8 9\n"
                        "node Exp w -> e\nnode MatMul x,e -> y\noutput y\n",
                        "", "", "");
    struct import start = {.model = m.onnx, .registry = m.registry}, *im[2];
    strata_error err = {0};
    struct memo *memo = memo_make(&err);
    const void *data[2];
    import_find_symbols(&start);
    for (int64_t i = 0; i < 2; i++) {
        cr_assert_eq(import_at(&im[i], &start, (int64_t[]){2 + i}, memo, &err), STRATA_OK,
                     "%s", err.message);
        cr_assert_eq(im[i]->n_sections, 1u);
        const struct value *w = &im[i]->g.values[im[i]->sections[0]->weights[0].value];
        cr_expect_float_eq(value_real(w, 1), 7.389056, 1e-4);
        data[i] = w->data;
    }
    cr_expect_eq(data[0], data[1]);
    import_free(im[0]);
    import_free(im[1]);
    memo_free(memo);
    free_model_close(&m);
}
