/* SPDX-License-Identifier: Apache-2.0
 *
 * ONNX models that are refused: each row in a message with the byte, the message that it
 * is in, and what is wrong.
 */
#include "tests/io/onnx_text.h"

TestSuite(onnx_malformed, .timeout = 600);

struct refusal {
    const char *name, *text, *place, *what;
};

static void expect_all(const struct refusal *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct blob b = onnx_text(cases[i].text);
        expect_refused(cases[i].name, &b, NULL, cases[i].place, cases[i].what);
        free(b.bytes);
    }
}
#define EXPECT_ALL(cases) expect_all(cases, sizeof(cases) / sizeof(cases)[0])

static const struct refusal wire[] = {
    {"empty", "", "net.onnx: ", "the file is empty"},
    {"no graph", "1:8", "byte 0x0: ", "has no graph (ModelProto)"},
    {"tag cut short", "!80", "byte 0x0: ", "ends amid a number (ModelProto)"},
    {"tag without a value", "!08", "byte 0x1: ", "ends amid a number"},
    {"varint of 11 bytes", "!08ffffffffffffffffffff01",
     "byte 0x1: ", "more than 64 bits"},
    {"varint of 65 bits", "!08ffffffffffffffffff02", "byte 0x1: ", "more than 64 bits"},
    {"field 0", "!0001", "byte 0x0: ", "field number 0, of 1 to 536870911"},
    {"field 2^29", "!808080801001", "byte 0x0: ", "field number 536870912"},
    {"group", "!0b0c", "byte 0x0: ", "field 1 is a group"},
    {"end of a group", "!0c", "byte 0x0: ", "field 1 is a group"},
    {"wire type 6", "!0e", "byte 0x0: ", "wire type 6, of 0 to 5"},
    {"wire type 7", "!ff01", "byte 0x0: ", "wire type 7"},
    {"length past the end", "!3a05", "byte 0x1: ", "length 5 runs past"},
    {"length of 2^64-1", "!3affffffffffffffffff01",
     "byte 0x1: ", "length 18446744073709551615 runs past"},
    {"unknown field past the end", "!7263", "byte 0x1: ", "length 99 runs past"},
    {"32 bits cut short", "!6d000000", "byte 0x1: ", "4 bytes runs past"},
    {"64 bits cut short", "!6900000000000000", "byte 0x1: ", "8 bytes runs past"},
    {"node past its graph", MODEL("!0a05") " 2:'xxxxx'",
     "byte 0x9: ", "length 5 runs past the message's end (GraphProto)"},
    {"attribute past its node", MODEL("1:{4:'A'} 1:{5:{1:'a'} !2a63}"),
     "byte 0x15: ", "length 99 runs past the message's end (GraphProto.node[1])"},
    {"dims of a node's tensor",
     MODEL("1:{4:'A' 5:{1:'p'} 5:{1:'q'} 5:{1:'a' 5:{1:3 !0a}}}"), "byte 0x",
     "(GraphProto.node[0].attribute[2].t)"},
    {"node of a branch", MODEL("1:{4:'If' 5:{1:'t' 6:{1:{4:'A'} 1:{!80}}}}"), "byte 0x",
     "(GraphProto.node[0].attribute[0].g.node[1])"},
    {"node of a function", "25:{1:'f' 7:{!80}} 7:{}", "byte 0x",
     "(ModelProto.functions[0].node[0])"},
    {"text where a number is", "1:'8' 7:{}",
     "byte 0x0: ", "field 1 (ir_version) has wire type 2; 0 is needed"},
    {"number where a text is", "2:8 7:{}",
     "byte 0x0: ", "field 2 (producer_name) has wire type 0; 2 is needed"},
    {"packed numbers cut short", ATTRIBUTE("8:=0180"), "byte 0x",
     "packed numbers end amid one"},
    {"packed number of 65 bits", ATTRIBUTE("8:=ffffffffffffffffff02"), "byte 0x",
     "more than 64 bits"},
    {"packed floats cut short", ATTRIBUTE("7:=000000"), "byte 0x",
     "3 bytes of packed numbers of 4 bytes each"},
    {"INI text", "!5b6e6574776f726b5d0a", "byte 0x0: ", "group"},
};

Test(onnx_malformed, damaged_wire_is_refused)
{
    EXPECT_ALL(wire);
}

static const struct refusal names[] = {
    {"NUL", "2:=610062 7:{}", "(ModelProto)", "producer_name has byte 0x00 at 1"},
    {"lone continuation", "2:=80 7:{}", "(ModelProto)", "byte 0x80 at 0; UTF-8"},
    {"overlong", "2:=c080 7:{}", "(ModelProto)", "byte 0xc0 at 0"},
    {"overlong of 3", "2:=e08080 7:{}", "(ModelProto)", "byte 0xe0 at 0"},
    {"surrogate", "2:=eda080 7:{}", "(ModelProto)", "byte 0xed at 0"},
    {"cut short", "2:=61e282 7:{}", "(ModelProto)", "byte 0xe2 at 1"},
    {"over 10ffff", "2:=f4908080 7:{}", "(ModelProto)", "byte 0xf4 at 0"},
    {"5 bytes", "2:=f888808080 7:{}", "(ModelProto)", "byte 0xf8 at 0"},
    {"of a node's input", NODE("1:=ff"), "(GraphProto.node[0])", "input has byte 0xff"},
    {"NUL among strings", ATTRIBUTE("9:=6100"), ".attribute[0])", "a NUL byte in it"},
};

Test(onnx_malformed, names_are_utf8_without_nul)
{
    EXPECT_ALL(names);
}

static const struct refusal messages[] = {
    {"node without op", MODEL("1:{3:'n'}"), "(GraphProto.node[0])",
     "node 'n' has no op_type"},
    {"attribute of two kinds", ATTRIBUTE("2:f1 3:1"), "node[0].attribute[0]",
     "attribute 'a' holds both FLOAT and INT"},
    {"attribute of another kind", ATTRIBUTE("20:1 3:1"), "node[0].attribute[0]",
     "says FLOAT and holds INT"},
    {"attribute of kind 15", ATTRIBUTE("20:15"), "node[0].attribute[0]",
     "has type 15, of 0 to 14"},
    {"attribute of kind -1", ATTRIBUTE("20:-1"), "node[0].attribute[0]", "has type -1"},
    {"tensor without one", ATTRIBUTE("20:4"), "node[0].attribute[0]",
     "says TENSOR and holds none"},
    {"graph without one", ATTRIBUTE("20:5"), "node[0].attribute[0]", "holds none"},
    {"reference with a value", ATTRIBUTE("21:'b' 3:1"), "node[0].attribute[0]",
     "has a value and refers to another"},
    {"attribute twice", NODE("5:{1:'a' 3:1} 5:{1:'a' 3:2}"), "(GraphProto.node[0])",
     "attribute 'a' comes twice"},
    {"domain with two versions", "8:{2:13} 8:{1:'ai.onnx' 2:14} 7:{}", "(ModelProto)",
     "opsets 13 and 14 of domain ''"},
    {"element type 27", VALUE("1:{1:27}"), "GraphProto.input[0]",
     "value 'x' has element type 27, of 0 to 26"},
    {"element type -1", VALUE("1:{1:-1}"), "GraphProto.input[0]", "element type -1"},
    {"9 dims",
     VALUE("1:{1:1 2:{1:{1:1} 1:{1:1} 1:{1:1} 1:{1:1} 1:{1:1} 1:{1:1} 1:{1:1} 1:{1:1} "
           "1:{1:1}}}"),
     "GraphProto.input[0]", "has 9 dims, at most 8"},
    {"dim of 2^31", VALUE("1:{1:1 2:{1:{1:3} 1:{1:2147483648}}}"),
     "(GraphProto.input[0].type.tensor_type.shape.dim[1])",
     "dim 2147483648 is over 2147483647"},
};

Test(onnx_malformed, what_contradicts_itself_is_refused)
{
    EXPECT_ALL(messages);
}

static const struct refusal tensors[] = {
    {"no type", TENSOR("1:1 9:=00000000"), "GraphProto.initializer[0]",
     "tensor 'w': has data type 0, of 1 to 26"},
    {"type 27", TENSOR("1:1 2:27"), "initializer[0]", "data type 27"},
    {"9 dims", TENSOR("1:[1 1 1 1 1 1 1 1 1] 2:1 4:f1"), "initializer[0]",
     "has 9 dims, at most 8"},
    {"negative dim", TENSOR("1:-1 2:1"), "initializer[0]", "dim 0 is -1, of 0 to"},
    {"dim of 2^31", TENSOR("1:2147483648 2:1"), "initializer[0]", "dim 0 is 2147483648"},
    {"2^40 elements", TENSOR("1:1048576 1:1048576 2:3"), "initializer[0]", "2^40"},
    {"product over 64 bits", TENSOR("1:[2147483647 2147483647 2147483647] 2:3"),
     "initializer[0]", "2^40"},
    {"segment", TENSOR("1:1 2:1 3:{1:0} 4:f1"), "initializer[0]", "is a segment"},
    {"no values", TENSOR("1:2 2:1"), "initializer[0]",
     "has 0 values; 2 elements of type float need 2"},
    {"one value too many", TENSOR("1:1 2:1 4:f1 4:f2"), "initializer[0]",
     "has 2 values; 1 elements"},
    {"raw too short", TENSOR("1:2 2:1 9:=0000000000"), "initializer[0]",
     "has 5 bytes of values; 2 elements of type float need 8"},
    {"raw too long", TENSOR("1:1 2:3 9:=0102"), "initializer[0]", "need 1"},
    {"raw beside none", TENSOR("1:0 2:3 9:=01"), "initializer[0]", "need 0"},
    {"4-bit too short", TENSOR("1:5 2:22 9:=0102"), "initializer[0]", "need 3"},
    {"raw and typed", TENSOR("1:1 2:1 4:f1 9:=00000000"), "initializer[0]",
     "values in raw_data and in float_data"},
    {"raw, empty, and typed", TENSOR("1:1 2:1 4:f1 9:="), "initializer[0]",
     "values in raw_data and in float_data"},
    {"two typed fields", TENSOR("1:1 2:1 4:f1 5:1"), "initializer[0]",
     "in float_data and in int32_data"},
    {"typed field of another type", TENSOR("1:1 2:1 5:1"), "initializer[0]",
     "values of type float in int32_data"},
    {"int64 in int32_data", TENSOR("1:1 2:7 5:1"), "initializer[0]",
     "values of type int64 in int32_data"},
    {"strings in raw", TENSOR("1:1 2:8 9:=61"), "initializer[0]",
     "strings in raw_data; string_data"},
    {"int8 of 128", TENSOR("1:1 2:3 5:128"), "initializer[0]",
     "element 0 is 128; a number for int8 is -128 to 127"},
    {"int8 of -129", TENSOR("1:1 2:3 5:-129"), "initializer[0]", "element 0 is -129"},
    {"uint8 of -1", TENSOR("1:1 2:2 5:-1"), "initializer[0]", "uint8 is 0 to 255"},
    {"uint16 of 65536", TENSOR("1:1 2:4 5:65536"), "initializer[0]", "0 to 65535"},
    {"float16 of -1", TENSOR("1:1 2:10 5:-1"), "initializer[0]", "0 to 65535"},
    {"bool of 2", TENSOR("1:1 2:9 5:2"), "initializer[0]", "bool is 0 to 1"},
    {"raw bool of 2", TENSOR("1:2 2:9 9:=0102"), "initializer[0]",
     "element 1 is 2; a bool is 0 or 1"},
    {"int32 of 2^31", TENSOR("1:1 2:6 5:2147483648"), "initializer[0]",
     "int32_data holds 2147483648, which is no 32-bit number"},
    {"uint32 of 2^32", TENSOR("1:1 2:12 11:4294967296"), "initializer[0]",
     "element 0 is 4294967296; a number for uint32"},
    {"data location 2", TENSOR("1:1 2:1 14:2"), "initializer[0]",
     "data_location 2, of 0 and 1"},
    {"external in memory", TENSOR("1:1 2:1 14:1 13:{1:'location' 2:'w'}"),
     "initializer[0]", "in memory has no folder"},
    {"external and raw", TENSOR("1:1 2:1 14:1 9:=00000000"), "initializer[0]",
     "values in external data and in raw_data"},
};

Test(onnx_malformed, tensors_that_do_not_add_up_are_refused)
{
    EXPECT_ALL(tensors);
}

/* Each limit is reached by one model and passed by the other. */
Test(onnx_malformed, limits_hold)
{
    const struct {
        const char *name, *fits, *over, *what;
        struct onnx_limits limits;
    } cases[] = {
        {"depth",
         NODE("5:{1:'a' 3:1}"),
         ATTRIBUTE("5:{1:1 2:1 4:f1}"),
         "nested more than 4 deep",
         {.depth = 4}},
        {"nodes",
         MODEL("1:{4:'A' 5:{1:'g' 6:{1:{4:'B'}}}}"),
         MODEL("1:{4:'A' 5:{1:'g' 6:{1:{4:'B'}}}} 1:{4:'C'}"),
         "more than the 2 nodes",
         {.nodes = 2}},
        {"inputs",
         NODE("1:'a' 1:'b'"),
         NODE("1:'a' 1:'b' 1:'c'"),
         "3 inputs and 0 outputs, at most 2",
         {.ports = 2}},
        {"outputs",
         NODE("2:'a' 2:'b'"),
         NODE("2:'a' 2:'b' 2:'c'"),
         "0 inputs and 3 outputs, at most 2",
         {.ports = 2}},
        {"name",
         "2:'abc' 7:{}",
         "2:'abcd' 7:{}",
         "producer_name has 4 bytes, at most 3",
         {.name_bytes = 3}},
        {"file",
         "7:{} 1:1",
         "7:{} 1:1 1:1",
         "file has 6 bytes, at most 4",
         {.file_bytes = 4}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct onnx_limits *c = &cases[i].limits;
        struct onnx_limits l = onnx_default_limits;
        l.depth = c->depth ? c->depth : l.depth;
        l.nodes = c->nodes ? c->nodes : l.nodes;
        l.ports = c->ports ? c->ports : l.ports;
        l.name_bytes = c->name_bytes ? c->name_bytes : l.name_bytes;
        l.file_bytes = c->file_bytes ? c->file_bytes : l.file_bytes;
        const struct onnx_model *m = NULL;
        struct blob fits = onnx_text(cases[i].fits), over = onnx_text(cases[i].over);
        strata_error err = {0};
        cr_expect_eq(onnx_parse(&m, fits.bytes, fits.size, "net.onnx", &l, &err),
                     STRATA_OK, "%s: %s", cases[i].name, err.message);
        onnx_close(m);
        expect_refused(cases[i].name, &over, &l, "", cases[i].what);
        free(fits.bytes);
        free(over.bytes);
    }
}

/* A node with n attributes, or a model with n opsets. */
static struct blob many(size_t n, bool attributes)
{
    char text[64];
    struct blob all = {0}, node = {0}, model = {0};
    for (size_t i = 0; i < n; i++) {
        snprintf(text, sizeof text, attributes ? "5:{1:'a%zu'}" : "8:{1:'d%zu'}", i);
        put_message(&all, text);
    }
    if (!attributes) {
        put_message(&all, "7:{}");
        return all;
    }
    put_message(&all, "4:'Op'");
    put_sized(&node, 1, &all);
    put_sized(&model, 7, &node);
    free(all.bytes);
    free(node.bytes);
    return model;
}

Test(onnx_malformed, attributes_and_opsets_are_few)
{
    for (int attributes = 0; attributes < 2; attributes++) {
        const size_t most = attributes ? 256 : 64;
        struct blob fits = many(most, attributes), over = many(most + 1, attributes);
        const struct onnx_model *m = NULL;
        strata_error err = {0};
        cr_expect_eq(onnx_parse(&m, fits.bytes, fits.size, "net.onnx", NULL, &err),
                     STRATA_OK, "%s", err.message);
        onnx_close(m);
        expect_refused("over", &over, NULL, attributes ? "node[0]" : "(ModelProto)",
                       attributes ? "257 attributes, at most 256"
                                  : "65 opsets, at most 64");
        free(fits.bytes);
        free(over.bytes);
    }
}

/* A few bytes of a file cannot ask for more memory than the cap: an empty attribute is
 * two bytes here and a hundred in memory. */
Test(onnx_malformed, memory_is_bounded_by_the_size_of_the_file)
{
    enum { N = 1 << 20 };
    struct blob node = {0}, graph = {0}, model = {0};
    put_field(&node, 4, 2);
    put_bytes(&node, "\2Op", 3);
    node.bytes = realloc(node.bytes, node.size + 2 * N);
    cr_assert_not_null(node.bytes);
    for (size_t i = 0; i < N; i++)
        memcpy(node.bytes + node.size + 2 * i, "\x2a", 2);
    node.size += 2 * (size_t)N;
    put_sized(&graph, 1, &node);
    put_sized(&model, 7, &graph);
    expect_refused("attributes", &model, NULL, "(GraphProto.node[0])",
                   "needs more memory than the");
    free(node.bytes);
    free(graph.bytes);
    free(model.bytes);
}

/* Merging copies what is there; a file of nothing but merges is refused before that takes
 * long. */
Test(onnx_malformed, a_graph_in_many_pieces_is_bounded)
{
    enum { N = 100000 };
    struct blob piece = onnx_text("7:{12:{}}"), model = {0};
    model.bytes = malloc(N * piece.size);
    cr_assert_not_null(model.bytes);
    for (size_t i = 0; i < N; i++, model.size += piece.size)
        memcpy(model.bytes + model.size, piece.bytes, piece.size);
    expect_refused("pieces", &model, NULL, "(GraphProto)", "needs more memory than the");
    free(piece.bytes);
    free(model.bytes);
}

static const char *const whole =
    "1:8 2:'maker' 3:'1.0' 8:{2:17} 8:{1:'ai.onnx.ml' 2:3}"
    "7:{2:'g' 1:{1:'x' 1:'w' 2:'y' 3:'n' 4:'Conv' 5:{1:'pads' 8:[1 1] 20:7} "
    "5:{1:'value' 5:{1:2 2:1 4:f1 4:f2} 20:4} 5:{1:'s' 4:'abc'} 5:{1:'f' 7:f1 7:f2}"
    "5:{1:'body' 6:{1:{4:'Relu'} 12:{1:'b'}} 20:5}}"
    "5:{8:'w' 1:2 1:1 2:1 9:=0000803f00000040} 5:{8:'i' 1:3 2:3 5:[1 2 3]}"
    "11:{1:'x' 2:{1:{1:1 2:{1:{2:'batch'} 1:{1:3}}}}} 12:{1:'y' 2:{4:{}}}}"
    "25:{1:'fn' 4:'a' 5:'b' 6:'alpha' 7:{4:'Elu' 5:{1:'alpha' 21:'alpha' 20:1}} 9:{2:17}"
    "10:'my' 11:{1:'beta' 2:f1 20:1}}";

/* Every value is touched, so that a sanitizer sees what is not there. */
static size_t touch(const struct onnx_graph *g)
{
    size_t sum = g->n_inputs + g->n_outputs;
    for (size_t i = 0; i < g->n_initializers; i++)
        for (size_t b = 0; g->initializers[i].data && b < g->initializers[i].bytes; b++)
            sum += ((const unsigned char *)g->initializers[i].data)[b];
    for (size_t i = 0; i < g->n_nodes; i++)
        for (size_t k = 0; k < g->nodes[i].n_attributes; k++) {
            const struct onnx_attribute *a = &g->nodes[i].attributes[k];
            sum += strlen(a->name) + strlen(a->text);
            for (size_t n = 0; a->kind == ONNX_A_GRAPH && n < a->n; n++)
                sum += touch(&a->graphs[n]);
            for (size_t n = 0; a->kind == ONNX_A_INTEGERS && n < a->n; n++)
                sum += a->integers[n] != 0;
        }
    return sum;
}

Test(onnx_malformed, cuts_and_flips_do_no_harm)
{
    struct blob b = onnx_text(whole);
    const struct onnx_model *m = read_text(&b, whole);
    const size_t sum = touch(&m->graph);
    cr_expect_gt(sum, 100);
    onnx_close(m);
    for (size_t size = 0; size < b.size; size++) {
        unsigned char *cut = malloc(size ? size : 1);
        cr_assert_not_null(cut);
        memcpy(cut, b.bytes, size);
        if (onnx_parse(&m, cut, size, "cut", NULL, NULL) == STRATA_OK)
            cr_expect_leq(touch(&m->graph), sum);
        onnx_close(m);
        free(cut);
    }
    for (size_t bit = 0; bit < 8 * b.size; bit++) {
        strata_error err = {0};
        b.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        cr_expect_eq(onnx_parse(&m, b.bytes, b.size, "flip", NULL, &err), err.status);
        cr_expect_eq(m == NULL, err.status != STRATA_OK);
        if (m)
            cr_expect_lt(touch(&m->graph), 100000);
        onnx_close(m);
        b.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    free(b.bytes);
}
