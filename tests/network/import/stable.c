/* SPDX-License-Identifier: Apache-2.0
 *
 * A model imported twice, or with its nodes and initializers in another order, gives the
 * same bytes: the network's text and its weights. And the text, read as a network and
 * printed, is the same but for its comments. Models that are not there are skipped.
 *
 *   STRATA_ONNX_DATA=DIR   folder with node/, pytorch-converted/, light/, ...; default
 *                          Debian's
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "network/import/import.h"
#include "network/network.h"
#include "tests/network/import/model_text.h"

#define FOLDER "/usr/share/libonnx-testdata/data"
#define PATH_BYTES 1024

/* What an import gives; texts and weights are NULL where it is refused. */
struct result {
    int status;
    char *text;
    void *weights;
    size_t text_size, weights_size;
};

static struct result import(const struct onnx_model *m, strata_registry *registry)
{
    struct result r = {0};
    struct import *im = NULL;
    strata_error err = {0};
    r.status = import_make(&im, m, registry, NULL, &err);
    if (r.status == STRATA_OK) {
        cr_assert_eq(import_text(im, NETWORK_MEMORY_WEIGHTS, &r.text, &r.text_size, &err),
                     STRATA_OK, "%s: %s", m->path, err.message);
        cr_assert_eq(import_weights(im, &r.weights, &r.weights_size, &err), STRATA_OK,
                     "%s: %s", m->path, err.message);
    }
    import_free(im);
    return r;
}

static void result_free(struct result *r)
{
    free(r->text);
    free(r->weights);
}

static void expect_same(const struct result *a, const struct result *b, const char *path,
                        const char *order)
{
    cr_expect_eq(a->status, b->status, "%s, %s: status %d, was %d", path, order,
                 b->status, a->status);
    if (!a->text || !b->text)
        return;
    cr_expect_str_eq(b->text, a->text, "%s, %s:\n%s\nwas:\n%s", path, order, b->text,
                     a->text);
    cr_expect(a->weights_size == b->weights_size &&
                  memcmp(a->weights, b->weights, a->weights_size) == 0,
              "%s, %s: other weights", path, order);
}

/* ---- orders --------------------------------------------------------------------------
 */

static size_t draw(uint32_t *seed, size_t n)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % n;
}

/* A copy of n items of so many bytes: reversed where seed is 0, else shuffled. */
static void *reorder(const void *items, size_t n, size_t size, uint32_t seed)
{
    char *out = malloc(n * size + 1), *at = out;
    const char *from = items;
    size_t *order = malloc((n + 1) * sizeof *order);
    cr_assert(out && order);
    for (size_t i = 0; i < n; i++)
        order[i] = n - 1 - i;
    for (size_t i = n; seed && i > 1; i--) {
        const size_t k = draw(&seed, i), other = order[k];
        order[k] = order[i - 1];
        order[i - 1] = other;
    }
    for (size_t i = 0; i < n; i++, at += size)
        memcpy(at, from + order[i] * size, size);
    free(order);
    return out;
}

static struct result import_reordered(const struct onnx_model *m, uint32_t seed,
                                      strata_registry *registry)
{
    struct onnx_model copy = *m;
    struct onnx_graph *g = &copy.graph;
    struct onnx_node *nodes = reorder(g->nodes, g->n_nodes, sizeof *nodes, seed);
    struct onnx_tensor *initializers =
        reorder(g->initializers, g->n_initializers, sizeof *initializers, seed);
    g->nodes = nodes;
    g->initializers = initializers;
    struct result r = import(&copy, registry);
    free(nodes);
    free(initializers);
    return r;
}

/* ---- reading and printing ------------------------------------------------------------
 */

static void drop_comments(char *text)
{
    char *to = text;
    for (const char *line = text; *line;) {
        const size_t n = strcspn(line, "\n"), whole = n + (line[n] == '\n');
        if (*line != '#') {
            memmove(to, line, whole);
            to += whole;
        }
        line += whole;
    }
    *to = '\0';
}

static void expect_printed(struct result *r, const char *path, strata_registry *registry)
{
    const struct network_memory memory = {.text = r->text,
                                          .text_size = r->text_size,
                                          .weights = r->weights,
                                          .weights_size = r->weights_size};
    strata_network *network = NULL;
    strata_error err = {0};
    char *printed = NULL;
    size_t size;
    cr_assert_eq(network_parse(&network, &memory, "imported", registry, &err), STRATA_OK,
                 "%s: %s\n%s", path, err.message, r->text);
    cr_assert_eq(network_print(&printed, &size, network, registry, &err), STRATA_OK,
                 "%s: %s", path, err.message);
    drop_comments(r->text);
    cr_expect_str_eq(printed, r->text, "%s, printed:\n%s\nwas:\n%s", path, printed,
                     r->text);
    free(printed);
    strata_network_destroy(network);
}

/* Whether the model is imported at all. */
static bool check_model(const struct onnx_model *m, strata_registry *registry)
{
    static const struct {
        const char *name;
        uint32_t seed;
    } orders[] = {{"reversed", 0}, {"shuffled", 1}, {"shuffled again", 77}};
    struct result first = import(m, registry), other = import(m, registry);
    const bool imported = first.text != NULL;
    expect_same(&first, &other, m->path, "twice");
    result_free(&other);
    for (size_t i = 0; imported && i < sizeof orders / sizeof orders[0]; i++) {
        other = import_reordered(m, orders[i].seed, registry);
        expect_same(&first, &other, m->path, orders[i].name);
        result_free(&other);
    }
    if (imported)
        expect_printed(&first, m->path, registry);
    result_free(&first);
    return imported;
}

static strata_registry *open_registry(void)
{
    strata_registry *registry = NULL;
    strata_error err = {0};
    cr_assert_eq(strata_registry_create(&registry, NULL, &err), STRATA_OK, "%s",
                 err.message);
    return registry;
}

/* ---- models of texts -----------------------------------------------------------------
 */

#define X "ir 8\nopset 21\ninput x f 2x3\n"

static const struct {
    const char *name, *text;
} texts[] = {
    {"nodes of no name",
     X "node Relu x -> a\nnode Sigmoid x -> b\nnode Tanh x -> c\nnode Add a,b -> d\n"
       "node Mul d,c -> y\noutput y\n"},
    {"outputs that nothing joins",
     X "node Relu x -> a\nnode Sigmoid x -> b\nnode Abs b -> c\noutput c\noutput a\n"
       "output b\n"},
    {"weights of nodes",
     X "init w f 3x2 1 2 3 4 5 6\nnode Transpose w -> u perm=[1,0]\n"
       "init v f 3x3 1 2 3 4 5 6 7 8 9\nnode Neg v -> t\nnode MatMul x,w -> a\n"
       "node MatMul x,t -> b\nnode MatMul a,u -> c\nnode Add b,c -> y\noutput y\n"},
    {"one weight of several layers",
     X "init w f 3x3 1 2 3 4 5 6 7 8 9\nnode MatMul x,w -> a\nnode Relu a -> b\n"
       "node MatMul b,w -> c\nnode Sigmoid x -> d\nnode MatMul d,w -> e\n"
       "node Add c,e -> y\noutput y\n"},
    {"one large weight under several names",
     "ir 8\nopset 21\ninput x f 1x256\ninit a f - 0\ninit b f - 65536\ninit d f - 1\n"
     "node Range a,b,d -> r\ninit s i 2 256 256\nnode Reshape r,s -> w\n"
     "node Identity w -> v\nnode Neg w -> m\nnode Neg m -> u\nnode MatMul x,v -> e\n"
     "node Tanh e -> f\nnode MatMul f,u -> g\nnode Sin g -> h\nnode MatMul h,w -> y\n"
     "output y\n"},
    {"constants as inputs",
     X "init k f 2x3 1 2 3 4 5 6\ninit l f 1x3 7 8 9\nnode Neg k -> m\n"
       "node Max x,k,l -> a\nnode Min x,m -> b\nnode Concat b,k,a -> y axis=0\n"
       "output y\noutput m\n"},
    {"names that are alike once spelled",
     X "node Relu x -> /a:b\nnode Sigmoid x -> a_b\nnode Tanh x -> a?b\n"
       "node Add /a:b,a_b -> c\nnode Add c,a?b -> y\noutput y\n"},
    {"a batch that stays a symbol",
     "ir 8\nopset 21\ninput x f batchx2x3\ninit c f 1x1x3 5 6 7\n"
     "node Shape x -> s start=0 end=1\ninit k i 2 1 3\nnode Concat s,k -> t axis=0\n"
     "node Expand c,t -> e\nnode Concat e,x -> z axis=1\ninit l i 1 9\n"
     "node Concat s,l -> v axis=0\nnode Reshape z,v -> r\nnode Relu r -> y\n"
     "output y\n"},
    {"rows in an order that goes away",
     "ir 8\nopset 21\ninput x f 2x3x2\ninit w f 2x2 1 2 3 4\ninit v f 2x2 5 6 7 8\n"
     "node Transpose x -> t perm=[1,0,2]\nnode MatMul t,w -> a\nnode MatMul t,v -> b\n"
     "node Sigmoid a -> s\nnode Mul s,b -> m\nnode Add m,t -> z\n"
     "node Transpose z -> y perm=[1,0,2]\nnode Abs a -> c\n"
     "node Transpose c -> d perm=[1,0,2]\noutput y\noutput d\n"},
    {"dims that stay symbols",
     "ir 8\nopset 21\ninput x f batchxTx3\ninput z f batchx2x3\n"
     "node Shape x -> s start=1 end=2\nnode Squeeze s -> n\ninit a i - 0\n"
     "init b i - 1\nnode Range a,n,b -> r\nnode Cast r -> c to=1\ninit k i 1 1\n"
     "node Unsqueeze c,k -> i\ninit h f 1x3 1 2 3\nnode Mul i,h -> u\n"
     "node Add x,u -> v\nnode Concat z,v -> j axis=1\n"
     "node Shape j -> l start=1 end=2\nnode Concat s,l -> d axis=0\n"
     "node ConstantOfShape d -> f\ninit two f - 2\nnode Add f,two -> g\n"
     "node Trilu g,b -> m\nnode Transpose j -> t perm=[0,2,1]\nnode MatMul v,t -> p\n"
     "node Add p,m -> q\nnode Shape x -> e end=1\ninit w i 1 -1\n"
     "node Concat e,w -> o axis=0\nnode Reshape q,o -> y\noutput y\n"},
    {"a function, called twice",
     "ir 8\nopset 21\nopset my 1\ninput x f 2x3\n"
     "node my::f x -> a\nnode my::f a -> b\nnode Add a,b -> y\noutput y\n"
     "function my::f p -> q\nopset 21\nnode Abs p -> r\nnode Sqrt r -> q\nend\n"},
};

Test(stable, texts)
{
    strata_registry *registry = open_registry();
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct message bytes = model_bytes(texts[i].text);
        const struct onnx_model *m = NULL;
        strata_error err = {0};
        cr_assert_eq(onnx_parse(&m, bytes.bytes, bytes.size, texts[i].name, NULL, &err),
                     STRATA_OK, "%s", err.message);
        cr_expect(check_model(m, registry), "%s: not imported", texts[i].name);
        onnx_close(m);
        free(bytes.bytes);
    }
    strata_registry_destroy(registry);
}

/* ---- models of files -----------------------------------------------------------------
 */

static void data_path(char out[PATH_BYTES], const char *file)
{
    const char *data = getenv("STRATA_ONNX_DATA");
    snprintf(out, PATH_BYTES, "%s/%s", data ? data : FOLDER, file);
    if (access(out, R_OK) != 0)
        cr_skip_test("%s: no such file here; set STRATA_ONNX_DATA", out);
}

static bool check_file(const char *path, strata_registry *registry)
{
    const struct onnx_model *m = NULL;
    if (onnx_open(&m, path, NULL, NULL) != STRATA_OK)
        return false;
    const bool imported = check_model(m, registry);
    onnx_close(m);
    return imported;
}

static void check_set(const char *set)
{
    strata_registry *registry = open_registry();
    struct dirent **names = NULL;
    char folder[PATH_BYTES], path[2 * PATH_BYTES];
    size_t imported = 0;
    data_path(folder, set);
    const int n = scandir(folder, &names, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s/model.onnx", folder, names[i]->d_name);
        if (strncmp(names[i]->d_name, "test_", 5) == 0)
            imported += check_file(path, registry);
        free(names[i]);
    }
    free(names);
    cr_expect_gt(imported, 0u, "%s: nothing is imported", folder);
    strata_registry_destroy(registry);
}

Test(stable, node)
{
    check_set("node");
}

Test(stable, pytorch_converted)
{
    check_set("pytorch-converted");
}

Test(stable, pytorch_operator)
{
    check_set("pytorch-operator");
}

Test(stable, simple)
{
    check_set("simple");
}

static void check_light(const char *name)
{
    strata_registry *registry;
    char file[64], path[PATH_BYTES];
    snprintf(file, sizeof file, "light/light_%s.onnx", name);
    data_path(path, file);
    registry = open_registry();
    cr_expect(check_file(path, registry), "%s: not imported", path);
    strata_registry_destroy(registry);
}

/* All but the three largest. */
#define LIGHT(name)                                                                      \
    Test(stable, light_##name)                                                           \
    {                                                                                    \
        check_light(#name);                                                              \
    }
LIGHT(densenet121)
LIGHT(inception_v1)
LIGHT(inception_v2)
LIGHT(resnet50)
LIGHT(shufflenet)
LIGHT(squeezenet)
