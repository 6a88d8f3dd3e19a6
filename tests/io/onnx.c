/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading ONNX models: each rule of the wire, of messages and of values.
 */
#include "tests/io/onnx_text.h"

#include <math.h>
#include <strata/plugin.h>

TestSuite(onnx, .timeout = 600);

Test(onnx, a_model_is_read_whole)
{
    struct blob b;
    const struct onnx_model *m = read_text(
        &b,
        "1:8 2:'maker' 3:'1.5' 8:{1:'ai.onnx' 2:17} 8:{1:'my' 2:2}"
        "7:{2:'g' 1:{1:'x' 1:'' 2:'y' 3:'n' 4:'Op' 7:'ai.onnx' 8:'o'} 1:{4:'B' 7:'my'}"
        "15:{} 11:{1:'x'} 12:{1:'y'} 13:{1:'v'}}"
        "25:{1:'F' 4:'a' 5:'b' 6:'k' 7:{4:'C'} 9:{2:17} 10:'my' 11:{1:'d' 3:4} 13:'p'}");
    cr_expect_eq(m->ir_version, 8);
    cr_expect_str_eq(m->path, "net.onnx");
    cr_expect_str_eq(m->producer, "maker");
    cr_expect_str_eq(m->producer_version, "1.5");
    cr_assert_eq(m->n_opsets, 2);
    cr_expect_str_eq(m->opsets[0].domain, "");
    cr_expect_str_eq(m->opsets[1].domain, "my");
    cr_expect_eq(m->opsets[1].version, 2);
    const struct onnx_graph *g = &m->graph;
    cr_expect_str_eq(g->name, "g");
    cr_assert(g->n_nodes == 2 && g->n_inputs == 1 && g->n_outputs == 1 &&
              g->n_values == 1 && g->n_sparse == 1 && g->n_initializers == 0);
    cr_assert(g->nodes[0].n_inputs == 2 && g->nodes[0].n_outputs == 1);
    cr_expect_str_eq(g->nodes[0].inputs[0], "x");
    cr_expect_str_eq(g->nodes[0].inputs[1], "");
    cr_expect_str_eq(g->nodes[0].outputs[0], "y");
    cr_expect_str_eq(g->nodes[0].op, "Op");
    cr_expect_str_eq(g->nodes[0].domain, "");
    cr_expect_str_eq(g->nodes[0].overload, "o");
    cr_expect_str_eq(g->nodes[1].domain, "my");
    cr_expect_str_eq(g->nodes[1].name, "");
    cr_assert_eq(m->n_functions, 1);
    const struct onnx_function *f = m->functions;
    cr_expect_str_eq(f->overload, "p");
    cr_assert(f->n_inputs == 1 && f->n_outputs == 1 && f->n_attributes == 1 &&
              f->n_defaults == 1 && f->n_nodes == 1 && f->n_opsets == 1);
    cr_expect_str_eq(f->attributes[0], "k");
    cr_expect_eq(f->defaults[0].integer, 4);
    onnx_close(m);
    free(b.bytes);
}

/* ---- the wire's rules, seen in attributes --------------------------------------------
 */

static const struct {
    const char *name, *text;
    enum onnx_kind kind;
    size_t n;
    double first, last;
} attributes[] = {
    {"float", "2:f1.5", ONNX_A_REAL, 0, 1.5, 1.5},
    {"int", "3:-7", ONNX_A_INTEGER, 0, -7, -7},
    {"least int", "3:-9223372036854775808", ONNX_A_INTEGER, 0, -0x1p63, -0x1p63},
    {"int in a long form", "!18878000", ONNX_A_INTEGER, 0, 7, 7},
    {"last one wins", "3:1 3:2 3:3", ONNX_A_INTEGER, 0, 3, 3},
    {"default, left out", "20:2", ONNX_A_INTEGER, 0, 0, 0},
    {"floats, unpacked", "7:f1 7:f2 7:f3", ONNX_A_REALS, 3, 1, 3},
    {"floats, packed", "7:=0000803f0000004000004040", ONNX_A_REALS, 3, 1, 3},
    {"ints, unpacked", "8:1 8:-2", ONNX_A_INTEGERS, 2, 1, -2},
    {"ints, packed", "8:[1 300 -2]", ONNX_A_INTEGERS, 3, 1, -2},
    {"ints, in pieces", "8:[1 2] 8:9 8:[] 8:[4]", ONNX_A_INTEGERS, 4, 1, 4},
    {"no ints", "20:7", ONNX_A_INTEGERS, 0, 0, 0},
    {"no ints, packed", "8:[]", ONNX_A_INTEGERS, 0, 0, 0},
    {"unknown fields", "99:1 8:5 98:'x' 97:f1 96:d1 95:{1:1}", ONNX_A_INTEGERS, 1, 5, 5},
    {"nothing", "", ONNX_A_NONE, 0, 0, 0},
    {"type", "14:{1:{1:1}} 20:13", ONNX_A_TYPE, 0, 0, 0},
    {"types", "15:{} 15:{}", ONNX_A_TYPES, 2, 0, 0},
    {"sparse tensor", "22:{} 20:11", ONNX_A_SPARSE_TENSOR, 0, 0, 0},
};

Test(onnx, attributes_follow_the_rules_of_the_wire)
{
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        struct blob b;
        char text[300];
        snprintf(text, sizeof text, NODE("5:{1:'p' 3:1} 5:{1:'a' %s}"),
                 attributes[i].text);
        const struct onnx_model *m = read_text(&b, text);
        const struct onnx_attribute *a = onnx_attribute(m->graph.nodes, "a");
        cr_assert_not_null(a);
        cr_expect(a->kind == attributes[i].kind && a->n == attributes[i].n,
                  "%s: kind %d, %zu elements", attributes[i].name, a->kind, a->n);
        const double first = a->kind == ONNX_A_REAL      ? a->real
                             : a->kind == ONNX_A_INTEGER ? (double)a->integer
                             : a->kind == ONNX_A_REALS   ? a->reals[0]
                             : a->n && a->integers       ? (double)a->integers[0]
                                                         : 0;
        cr_expect_eq(first, attributes[i].first, "%s: %g", attributes[i].name, first);
        const double last = a->kind == ONNX_A_REALS ? a->reals[a->n - 1]
                            : a->n && a->integers   ? (double)a->integers[a->n - 1]
                                                    : first;
        cr_expect_eq(last, attributes[i].last, "%s: %g", attributes[i].name, last);
        cr_expect_null(onnx_attribute(m->graph.nodes, "b"));
        onnx_close(m);
        free(b.bytes);
    }
}

Test(onnx, texts_and_messages_of_attributes)
{
    struct blob b;
    const struct onnx_model *m = read_text(
        &b, NODE("5:{1:'s' 4:=610062ff} 5:{1:'l' 9:'x' 9:'' 9:=ff}"
                 "5:{1:'t' 5:{1:1 2:1 4:f5}} 5:{1:'T' 10:{2:1 4:f1} 10:{2:1 4:f2}}"
                 "5:{1:'g' 6:{2:'in' 1:{4:'B'}}} 5:{1:'G' 11:{2:'p'} 11:{2:'q'}}"
                 "5:{1:'r' 20:4 21:'outer'} 5:{1:'e' 20:3}"));
    const struct onnx_node *n = m->graph.nodes;
    const struct onnx_attribute *a = n->attributes;
    cr_assert_eq(n->n_attributes, 8);
    cr_expect(a[0].kind == ONNX_A_TEXT && a[0].text_bytes == 4);
    cr_expect_eq(memcmp(a[0].text, "a\0b\xff", 5), 0);
    cr_expect(a[1].kind == ONNX_A_TEXTS && a[1].n == 3);
    cr_expect_str_eq(a[1].texts[0], "x");
    cr_expect_str_eq(a[1].texts[1], "");
    cr_expect_str_eq(a[1].texts[2], "\xff");
    cr_expect(a[2].kind == ONNX_A_TENSOR && a[2].n == 1);
    cr_expect_eq(*(const float *)a[2].tensors->data, 5);
    cr_expect(a[3].kind == ONNX_A_TENSORS && a[3].n == 2 && a[3].tensors[1].rank == 0);
    cr_expect_eq(*(const float *)a[3].tensors[1].data, 2);
    cr_expect(a[4].kind == ONNX_A_GRAPH && a[4].n == 1);
    cr_expect_str_eq(a[4].graphs->nodes[0].op, "B");
    cr_expect(a[5].kind == ONNX_A_GRAPHS && a[5].n == 2);
    cr_expect_str_eq(a[5].graphs[1].name, "q");
    cr_expect(a[6].kind == ONNX_A_TENSOR && !a[6].tensors);
    cr_expect_str_eq(a[6].reference, "outer");
    cr_expect(a[7].kind == ONNX_A_TEXT && a[7].text_bytes == 0);
    cr_expect_str_eq(a[7].text, "");
    onnx_close(m);
    free(b.bytes);
}

/* Two parts of a singular message are one; of a oneof, the last is alone. */
Test(onnx, messages_of_a_singular_field_merge)
{
    struct blob b;
    const struct onnx_model *m = read_text(
        &b, "7:{2:'first' 1:{4:'A'} 12:{1:'y'}} 1:3 7:{1:{4:'B'} 2:'second' 1:{4:'C'}"
            "1:{4:'D' 5:{1:'t' 5:{1:2 2:1 4:f1} 5:{8:'w' 4:f2}}}"
            "11:{1:'x' 2:{1:{1:1}} 2:{1:{2:{1:{1:4}}}} 2:{1:{2:{1:{2:'n'}}}}}"
            "11:{1:'z' 2:{1:{1:1} 4:{} 1:{2:{}}}}"
            "11:{1:'d' 2:{1:{2:{1:{1:4 2:'n'} 1:{2:'n' 1:4}}}}}}");
    const struct onnx_graph *g = &m->graph;
    cr_expect_str_eq(g->name, "second");
    cr_assert(g->n_nodes == 4 && g->n_outputs == 1 && g->n_inputs == 3);
    cr_expect_str_eq(g->nodes[0].op, "A");
    cr_expect_str_eq(g->nodes[3].op, "D");
    const struct onnx_tensor *t = g->nodes[3].attributes[0].tensors;
    cr_expect_str_eq(t->name, "w");
    cr_expect(t->count == 2 && ((const float *)t->data)[0] == 1 &&
              ((const float *)t->data)[1] == 2);
    cr_assert(g->inputs[0].type == ONNX_FLOAT && g->inputs[0].rank == 2);
    cr_expect_eq(g->inputs[0].dims[0].value, 4);
    cr_expect_str_eq(g->inputs[0].dims[1].symbol, "n");
    cr_expect(g->inputs[1].form == ONNX_TENSOR && g->inputs[1].type == ONNX_UNDEFINED &&
              g->inputs[1].rank == 0);
    cr_expect_eq(g->inputs[2].dims[0].value, -1);
    cr_expect_str_eq(g->inputs[2].dims[0].symbol, "n");
    cr_expect_eq(g->inputs[2].dims[1].value, 4);
    cr_expect_str_eq(g->inputs[2].dims[1].symbol, "");
    onnx_close(m);
    free(b.bytes);
}

/* ---- values' types ------------------------------------------------------------------
 */

static const struct {
    const char *type;
    enum onnx_form form;
    enum onnx_type element;
    int rank;
    int64_t dim;
    const char *symbol;
} values[] = {
    {"", ONNX_UNTYPED, ONNX_UNDEFINED, -1, 0, NULL},
    {"1:{}", ONNX_TENSOR, ONNX_UNDEFINED, -1, 0, NULL},
    {"1:{1:10}", ONNX_TENSOR, ONNX_FLOAT16, -1, 0, NULL},
    {"1:{1:1 2:{}}", ONNX_TENSOR, ONNX_FLOAT, 0, 0, NULL},
    {"1:{1:7 2:{1:{1:5}}}", ONNX_TENSOR, ONNX_INT64, 1, 5, ""},
    {"1:{1:7 2:{1:{1:0}}}", ONNX_TENSOR, ONNX_INT64, 1, 0, ""},
    {"1:{1:7 2:{1:{1:-1}}}", ONNX_TENSOR, ONNX_INT64, 1, -1, ""},
    {"1:{1:7 2:{1:{}}}", ONNX_TENSOR, ONNX_INT64, 1, -1, ""},
    {"1:{1:7 2:{1:{2:'batch'}}}", ONNX_TENSOR, ONNX_INT64, 1, -1, "batch"},
    {"4:{1:{1:{1:1}}}", ONNX_SEQUENCE, ONNX_UNDEFINED, -1, 0, NULL},
    {"5:{1:7}", ONNX_MAP, ONNX_UNDEFINED, -1, 0, NULL},
    {"7:{}", ONNX_UNTYPED, ONNX_UNDEFINED, -1, 0, NULL},
    {"8:{1:1 2:{1:{1:3}}}", ONNX_SPARSE, ONNX_FLOAT, 1, 3, ""},
    {"9:{}", ONNX_OPTIONAL, ONNX_UNDEFINED, -1, 0, NULL},
};

Test(onnx, values_say_their_types)
{
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct blob b;
        char text[200];
        snprintf(text, sizeof text, VALUE("%s"), values[i].type);
        const struct onnx_model *m = read_text(&b, text);
        const struct onnx_value *v = m->graph.inputs;
        cr_expect(v->form == values[i].form && v->type == values[i].element &&
                      v->rank == values[i].rank,
                  "%s: form %d, type %d, rank %d", values[i].type, v->form, v->type,
                  v->rank);
        if (values[i].symbol) {
            cr_expect_eq(v->dims[0].value, values[i].dim, "%s", values[i].type);
            cr_expect_str_eq(v->dims[0].symbol, values[i].symbol);
        }
        onnx_close(m);
        free(b.bytes);
    }
}

/* ---- tensors' elements --------------------------------------------------------------
 */

static const struct {
    const char *name, *text;
    enum onnx_type type;
    const char *hex;
} tensors[] = {
    {"float", "1:2 2:1 4:f1 4:f-2", ONNX_FLOAT, "0000803f000000c0"},
    {"float, packed", "1:2 2:1 4:=0000803f000000c0", ONNX_FLOAT, "0000803f000000c0"},
    {"float, in pieces", "1:3 2:1 4:f1 4:=000000c00000803f", ONNX_FLOAT,
     "0000803f000000c00000803f"},
    {"float, behind empty pieces", "1:2 2:1 4:= 4:= 4:=0000803f000000c0", ONNX_FLOAT,
     "0000803f000000c0"},
    {"float, raw", "1:2 2:1 9:=0000803f000000c0", ONNX_FLOAT, "0000803f000000c0"},
    {"dims, packed", "1:[1 2] 2:1 9:=0000803f000000c0", ONNX_FLOAT, "0000803f000000c0"},
    {"scalar", "2:1 4:f1", ONNX_FLOAT, "0000803f"},
    {"double", "1:1 2:11 10:d1", ONNX_DOUBLE, "000000000000f03f"},
    {"complex64", "1:1 2:14 4:f1 4:f-2", ONNX_COMPLEX64, "0000803f000000c0"},
    {"complex128", "1:1 2:15 10:d1 10:d1", ONNX_COMPLEX128,
     "000000000000f03f000000000000f03f"},
    {"int32", "1:2 2:6 5:[1 -2]", ONNX_INT32, "01000000feffffff"},
    {"int16", "1:2 2:5 5:[1 -2]", ONNX_INT16, "0100feff"},
    {"int8", "1:3 2:3 5:[1 -2 -128]", ONNX_INT8, "01fe80"},
    {"uint16", "1:2 2:4 5:[1 65535]", ONNX_UINT16, "0100ffff"},
    {"uint8", "1:2 2:2 5:[1 255]", ONNX_UINT8, "01ff"},
    {"bool", "1:2 2:9 5:[1 0]", ONNX_BOOL, "0100"},
    {"float16", "1:2 2:10 5:[15360 65535]", ONNX_FLOAT16, "003cffff"},
    {"bfloat16", "1:1 2:16 5:16256", ONNX_BFLOAT16, "803f"},
    {"float8e4m3fn", "1:2 2:17 5:[56 255]", ONNX_FLOAT8E4M3FN, "38ff"},
    {"int64", "1:2 2:7 7:[1 -2]", ONNX_INT64, "0100000000000000feffffffffffffff"},
    {"uint64", "1:1 2:13 11:18446744073709551615", ONNX_UINT64, "ffffffffffffffff"},
    {"uint32", "1:3 2:12 11:[1 4294967295 2]", ONNX_UINT32, "01000000ffffffff02000000"},
    {"int4", "1:3 2:22 5:[33 15]", ONNX_INT4, "210f"},
    {"uint4, raw", "1:3 2:21 9:=210f", ONNX_UINT4, "210f"},
    {"uint2, raw", "1:5 2:25 9:=e401", ONNX_UINT2, "e401"},
    {"empty", "1:0 1:3 2:1", ONNX_FLOAT, ""},
    {"empty, raw", "1:0 2:7 9:=", ONNX_INT64, ""},
    {"empty, doubles without one", "1:0 10:= 2:11", ONNX_DOUBLE, ""},
    {"empty, int32s without one", "1:0 5:= 2:2", ONNX_UINT8, ""},
    {"empty, uint64s without one", "1:0 11:= 2:12", ONNX_UINT32, ""},
    {"strings", "1:2 2:8 6:'a' 6:'b'", ONNX_STRING, ""},
    {"external entries without location", "1:1 2:3 5:7 13:{1:'k' 2:'v'}", ONNX_INT8,
     "07"},
};

/* Wherever the tensor lies in the file, the elements lie aligned. */
static void expect_tensor(size_t i, int padding)
{
    struct blob b, wanted = {0};
    char text[400];
    put_hex(&wanted, tensors[i].hex);
    snprintf(text, sizeof text, "2:'%.*s' " TENSOR("%s"), padding, "12345678",
             tensors[i].text);
    const struct onnx_model *m = read_text(&b, text);
    struct blob before = onnx_text(text);
    const struct onnx_tensor *t = m->graph.initializers;
    const char *name = tensors[i].name;
    const size_t size = (size_t)onnx_type_bits(t->type) / 8;
    cr_assert(m->graph.n_initializers == 1 && t->type == tensors[i].type, "%s", name);
    cr_expect_str_eq(t->name, "w");
    cr_expect(t->bytes == wanted.size && !t->loose, "%s: %zu bytes", name, t->bytes);
    cr_expect_eq(t->data == NULL, wanted.size == 0, "%s", name);
    if (wanted.size)
        cr_expect_arr_eq(t->data, wanted.bytes, wanted.size, "%s", name);
    if (size > 1)
        cr_expect_eq((uintptr_t)t->data % (size > 8 ? 8 : size), 0, "%s at %p", name,
                     t->data);
    cr_expect_arr_eq(b.bytes, before.bytes, b.size, "%s: the file is as it was", name);
    onnx_close(m);
    free(before.bytes);
    free(b.bytes);
    free(wanted.bytes);
}

Test(onnx, tensors_have_dense_aligned_elements)
{
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        for (int padding = 0; padding < 8; padding++)
            expect_tensor(i, padding);
}

/* Values that lie aligned are used where they are; with loose_bytes the others, too. */
Test(onnx, values_stay_in_the_file)
{
    struct onnx_limits loose = onnx_default_limits;
    loose.loose_bytes = 8;
    for (int field = 0; field < 2; field++) {
        size_t inside = 0;
        for (int padding = 0; padding < 4; padding++) {
            char text[200];
            const struct onnx_model *m = NULL;
            snprintf(text, sizeof text,
                     "2:'%.*s' " TENSOR("1:2 2:1 %d:=0000803f000000c0"), padding, "1234",
                     field ? 4 : 9);
            struct blob b;
            onnx_close(read_text(&b, text));
            for (int l = 0; l < 2; l++) {
                cr_assert_eq(
                    onnx_parse(&m, b.bytes, b.size, "net.onnx", l ? &loose : NULL, NULL),
                    STRATA_OK);
                const unsigned char *at = m->graph.initializers->data;
                const bool within = at >= b.bytes && at < b.bytes + b.size;
                inside += !l && within;
                if (l && !field)
                    cr_expect(within &&
                              m->graph.initializers->loose == ((uintptr_t)at % 4 != 0));
                onnx_close(m);
            }
            free(b.bytes);
        }
        cr_expect_eq(inside, 1, "field %d: %zu of 4 places", field, inside);
    }
}

Test(onnx, files_are_mapped)
{
    struct blob tensor = onnx_text("1:2 2:7 8:'t' 7:[3 4]"), model = onnx_text(MODEL(""));
    strata_error err = {0};
    const struct onnx_model *m = NULL;
    scratch_make();
    const char *path = spill("t.pb", tensor.bytes, tensor.size);
    cr_assert_eq(onnx_open_tensor(&m, path, NULL, &err), STRATA_OK, "%s", err.message);
    cr_assert_eq(m->graph.n_initializers, 1);
    cr_expect_str_eq(m->graph.initializers->name, "t");
    cr_expect_eq(((const int64_t *)m->graph.initializers->data)[1], 4);
    cr_expect_str_eq(m->path, path);
    onnx_close(m);
    path = spill("m.onnx", model.bytes, model.size);
    cr_assert_eq(onnx_open(&m, path, NULL, &err), STRATA_OK, "%s", err.message);
    cr_expect_eq(m->ir_version, 8);
    onnx_close(m);
    onnx_close(NULL);
    static const struct {
        const char *name;
        const char *what;
    } bad[] = {{"absent", "cannot be opened"}, {".", "is a folder"}, {"e", "is empty"}};
    spill("e", "", 0);
    for (size_t i = 0; i < 3; i++) {
        error_clear(&err);
        path = in_scratch(bad[i].name);
        int status = onnx_open(&m, path, NULL, &err);
        expect_error(bad[i].name, status, &err, path, "", bad[i].what);
        cr_expect_null(m);
    }
    scratch_remove();
    free(tensor.bytes);
    free(model.bytes);
}

/* ---- types that the core has not ----------------------------------------------------
 */

static const struct {
    const char *tensor; /* dims, type, raw bytes */
    int n;
    double values[8];
} carried[] = {
    {"1:3 2:22 9:=f708", 3, {7, -1, -8}},        /* int4 */
    {"1:3 2:21 9:=f708", 3, {7, 15, 8}},         /* uint4 */
    {"1:5 2:26 9:=e402", 5, {0, 1, -2, -1, -2}}, /* int2 */
    {"1:5 2:25 9:=e402", 5, {0, 1, 2, 3, 2}},    /* uint2 */
    {"1:2 2:5 9:=ffff0080", 2, {-1, -32768}},    /* int16 */
    {"1:2 2:4 9:=ffff0080", 2, {65535, 32768}},  /* uint16 */
    {"1:2 2:12 9:=ffffffff01000000", 2, {4294967295, 1}},
    {"1:2 2:13 9:=ffffffffffffffff0200000000000000", 2, {-1, 2}},
    {"1:8 2:23 9:=10325476", 8, {0, 0.5, 1, 1.5, 2, 3, 4, 6}}, /* e2m1 */
    {"1:2 2:23 9:=9f", 2, {-6, -0.5}},
    {"1:4 2:18 9:=7f010880", 4, {240, 0x1p-10, 0x1p-7, NAN}},     /* e4m3fnuz */
    {"1:4 2:20 9:=ff010480", 4, {-57344, 0x1p-17, 0x1p-15, NAN}}, /* e5m2fnuz */
    {"1:4 2:24 9:=007ffeff", 4, {0x1p-127, 1, 0x1p127, NAN}},     /* e8m0 */
    {"1:0 2:21", 0, {0}},
};

static double widened(const void *data, int carrier, int i)
{
    switch (carrier) {
    case STRATA_INT8:
        return ((const int8_t *)data)[i];
    case STRATA_INT32:
        return ((const int32_t *)data)[i];
    case STRATA_INT64:
        return (double)((const int64_t *)data)[i];
    default:
        return ((const float *)data)[i];
    }
}

Test(onnx, elements_of_types_that_are_no_dtype_keep_their_values)
{
    for (size_t k = 0; k < sizeof carried / sizeof *carried; k++) {
        char text[200];
        struct blob b;
        double room[8];
        snprintf(text, sizeof text, TENSOR("%s"), carried[k].tensor);
        const struct onnx_model *m = read_text(&b, text);
        const struct onnx_tensor *t = m->graph.initializers;
        const int carrier = onnx_type_carrier(t->type);
        cr_assert(t->count == carried[k].n && onnx_type_core(t->type) < 0);
        onnx_widen(room, t);
        for (int i = 0; i < carried[k].n; i++) {
            const double found = widened(room, carrier, i), wanted = carried[k].values[i];
            cr_expect(found == wanted || (isnan(found) && isnan(wanted)),
                      "%s, element %d: %g, should be %g", onnx_type_name(t->type), i,
                      found, wanted);
        }
        onnx_close(m);
        free(b.bytes);
    }
    cr_expect_eq(onnx_type_carrier(ONNX_FLOAT16), STRATA_FP16);
    cr_expect_eq(onnx_type_carrier(ONNX_STRING), -1);
    cr_expect_eq(onnx_type_carrier(ONNX_TYPE_COUNT), -1);
}

Test(onnx, types_have_names_and_sizes)
{
    for (int t = 1; t < ONNX_TYPE_COUNT; t++) {
        const enum onnx_type type = (enum onnx_type)t;
        const int core = onnx_type_core(type), bits = onnx_type_bits(type);
        cr_expect_str_neq(onnx_type_name(type), "?");
        cr_expect_eq(bits == 0, type == ONNX_STRING);
        if (core >= 0)
            cr_expect_eq(strata_dtype_size(core) * 8, (size_t)bits, "%s",
                         onnx_type_name(type));
    }
    cr_expect_eq(onnx_type_core(ONNX_BOOL), STRATA_BOOL8);
    cr_expect_eq(onnx_type_core(ONNX_UINT16), -1);
    cr_expect_str_eq(onnx_type_name(ONNX_TYPE_COUNT), "?");
    cr_expect_eq(onnx_type_bits(ONNX_TYPE_COUNT), 0);
    cr_expect_eq(onnx_type_core(ONNX_TYPE_COUNT), -1);
}
