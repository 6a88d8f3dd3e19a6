/* SPDX-License-Identifier: Apache-2.0
 *
 * Loading networks: every malformed file of tests/data/bad-ini, where a folder is a
 * subject, then what a good file gives: attributes, graph, shapes.
 */
#include <dirent.h>
#include <time.h>

#include "tests/network/network_text.h"

TestSuite(network, .init = network_start, .fini = network_stop, .timeout = 600);

/* The message of a text that is refused; static. */
static const char *refused(const char *text)
{
    static strata_error err;
    strata_network *net;
    memset(&err, 0, sizeof err);
    const char *path = spill("net.ini", text, strlen(text));
    cr_expect_neq(strata_network_load(&net, path, registry, NULL, &err), STRATA_OK);
    cr_expect_null(net);
    return err.message;
}

/* ---- malformed files ---- */

/* "; EXPECTED" in the first line. FILE stands for the path, and an expectation that
 * starts with a place is one in this file. */
static void expected_text(const char *path, const char *first, char *out, size_t size)
{
    const char *file = strstr(first, "FILE");
    if (first[0] >= '0' && first[0] <= '9')
        snprintf(out, size, "%s:%s", path, first);
    else if (file)
        snprintf(out, size, "%.*s%s%s", (int)(file - first), first, path, file + 4);
    else
        snprintf(out, size, "%s", first);
}

static void check_malformed(const char *folder, const char *name)
{
    char path[1536], first[512] = "", want[2560];
    strata_error err = {0};
    strata_network *net;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "r");
    cr_assert_not_null(f, "%s", path);
    cr_assert(fgets(first, sizeof first, f) && !strncmp(first, "; ", 2),
              "%s does not say what it expects", path);
    fclose(f);
    first[strcspn(first, "\n")] = '\0';
    expected_text(path, first + 2, want, sizeof want);
    cr_expect_neq(strata_network_load(&net, path, registry, NULL, &err), STRATA_OK,
                  "%s is accepted", path);
    cr_expect_null(net);
    cr_expect_not_null(strstr(err.message, want), "%s: want\n%s\ngot\n%s", path, want,
                       err.message);
    cr_expect_eq(strlen(err.message), err.length);
}

/* How many INI files stand in a folder; each is checked. */
static int check_folder(const char *folder)
{
    struct dirent *entry;
    int n = 0;
    DIR *dir = opendir(folder);
    cr_assert_not_null(dir, "%s", folder);
    while ((entry = readdir(dir))) {
        const char *dot = strrchr(entry->d_name, '.');
        if (!dot || strcmp(dot, ".ini"))
            continue;
        check_malformed(folder, entry->d_name);
        n++;
    }
    closedir(dir);
    return n;
}

Test(network, every_malformed_file_is_refused_with_place_and_reason)
{
    char folder[512], subject[1024];
    struct dirent *entry;
    int n = 0;
    snprintf(folder, sizeof folder, "%s/tests/data/bad-ini", env_or("srcdir", "."));
    DIR *dir = opendir(folder);
    cr_assert_not_null(dir, "%s", folder);
    while ((entry = readdir(dir))) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(subject, sizeof subject, "%s/%s", folder, entry->d_name);
        n += check_folder(subject);
    }
    closedir(dir);
    cr_expect_geq(n, 230, "%d files", n);
}

Test(network, errors_of_all_steps_before_the_graph_come_together)
{
    const char *message = refused("[network]\nformat = 2\noutputs = a, b\n[input x]\n"
                                  "shape = z\nno pair\n[layer a]\ntype = Split\n"
                                  "parts = x\n[layer b]\ntype = Nothing\n"
                                  "inputs = c\n[build]\nfusion = 7\n");
    static const char *const lines[] = {
        ":2:10:", ":5:9:", ":6:1:", ":9:9:", ":11:8:", ":12:10:", ":14:10:"};
    for (size_t i = 0; i < ARRAY_LENGTH(lines); i++)
        cr_expect_not_null(strstr(message, lines[i]), "%s is not told in %s", lines[i],
                           message);
    cr_expect_null(strstr(message, ":3:"), "outputs name layers: %s", message);
}

/* ---- attributes ---- */

struct affine { /* as in tests/modules/test_layers.c */
    int64_t units;
    double gain;
    int32_t flag, mode;
    strata_string label;
    strata_ints steps;
    strata_reals taps;
    int64_t any;
};

Test(network, attributes_take_their_defaults)
{
    strata_network *net = load(HEAD "[layer out]\ntype = Affine\nunits = 4\n"
                                    "weight = zeros\n");
    const struct affine *p = layer(net, "out")->params;
    cr_expect(p->units == 4 && p->gain == 1.5 && p->flag == 1 && p->mode == 1);
    cr_expect_str_eq(p->label.text, "plain");
    cr_expect_eq(p->label.length, 5);
    cr_expect(p->steps.n == 2 && p->steps.v[0] == 1 && p->steps.v[1] == 2);
    cr_expect(p->taps.n == 2 && p->taps.v[0] == 0.5 && p->taps.v[1] == 0.25);
    cr_expect_eq(p->any, -7);
    strata_network_destroy(net);
}

Test(network, attributes_take_the_file_s_values)
{
    strata_network *net = load(
        "[profile]\nN = 3\n" HEAD
        "[layer out]\ntype = test::Affine@1\nunits = 4096\nweight = zeros\ngain = 0.25\n"
        "flag = off\nmode = mul\nlabel = \"a, b\"\nsteps = 9 x N x 1\n"
        "taps = -1, 1e-3, .5, 1\nany = -9223372036854775808\n");
    const struct affine *p = layer(net, "out")->params;
    cr_expect(p->units == 4096 && p->gain == 0.25 && p->flag == 0 && p->mode == 2);
    cr_expect_str_eq(p->label.text, "a, b");
    cr_expect(p->steps.n == 3 && p->steps.v[0] == 9 && p->steps.v[1] == 3);
    cr_expect(p->taps.n == 4 && p->taps.v[0] == -1 && p->taps.v[1] == 1e-3);
    cr_expect_eq(p->any, INT64_MIN);
    strata_network_destroy(net);
    net = load(HEAD "[layer out]\ntype = Affine\nunits = 1\nweight = zeros\n"
                    "label = \"\"\nsteps = \"\"\ntaps = \"\"\n");
    p = layer(net, "out")->params;
    cr_expect(p->label.length == 0 && p->steps.n == 0 && p->taps.n == 0);
    strata_network_destroy(net);
}

/* ---- graph ---- */

static void expect_order(const char *text, const char *order)
{
    char found[64] = "";
    strata_network *net = load(text);
    for (size_t i = 0; i < net->n_layers; i++) {
        strcat(found, net->layers[i].name);
        for (int k = 0; k < net->layers[i].n_inputs; k++)
            cr_expect_lt(net->tensors[net->layers[i].inputs[k]].producer, (int)i);
        for (int k = 0; k < net->layers[i].n_outputs; k++) {
            const struct network_tensor *t = &net->tensors[net->layers[i].outputs[k]];
            cr_expect(t->producer == (int)i && t->port == k, "%s", t->name);
        }
    }
    cr_expect_str_eq(found, order);
    strata_network_destroy(net);
}

Test(network, producers_come_first_and_the_file_s_order_stays_where_it_can)
{
#define NET "[network]\nformat = 1\noutputs = a\n[input x]\nshape = 2 x 6\n"
    expect_order(NET "[layer c]\ntype = Pass\n[layer a]\ntype = Pass\n[layer b]\n"
                     "type = Pass\n",
                 "cab");
    expect_order(NET "[layer a]\ntype = Join\ninputs = b, c\n[layer b]\ntype = Pass\n"
                     "inputs = x\n[layer c]\ntype = Pass\n",
                 "bca");
    expect_order(NET "[layer b]\ntype = Pass\ninputs = x\n[layer c]\ntype = Pass\n"
                     "inputs = x\n[layer a]\ntype = Join\ninputs = c, b, c\n",
                 "bca");
    expect_order(NET "[layer a]\ntype = Pass\ninputs = d\n[layer b]\ntype = Pass\n"
                     "inputs = x\n[layer d]\ntype = Pass\ninputs = b\n",
                 "bda");
}

Test(network, tensors_are_named_by_layer_and_port)
{
    strata_network *net = load("[network]\nformat = 1\noutputs = s:1, s, out\n"
                               "output_formats = fp16:nchw\n[input x]\nshape = 2 x 6\n"
                               "[layer s]\ntype = Split\nparts = 3\n"
                               "[layer out]\ntype = Join\ninputs = s:2, s:0, x\n"
                               "format = fp32:nchw, fp16:nhwc8\nimpl = copy\n");
    const struct network_layer *out = layer(net, "out");
    expect_dims(net, "s", 2, (int64_t[]){2, 2});
    expect_dims(net, "s:2", 2, (int64_t[]){2, 2});
    expect_dims(net, "out", 2, (int64_t[]){2, 10});
    cr_expect_str_eq(net->tensors[out->inputs[0]].name, "s:2");
    cr_expect_str_eq(net->tensors[out->inputs[1]].name, "s");
    cr_expect_str_eq(net->tensors[out->inputs[2]].name, "x");
    cr_expect_eq(out->formats, STRATA_F32_NCHW | STRATA_F16_NHWC8);
    cr_expect_eq(tensor(net, "out")->formats, out->formats);
    cr_expect_eq(tensor(net, "s")->formats, 0);
    cr_expect_str_eq(out->impl, "copy");
    cr_assert_eq(net->n_outputs, 3);
    cr_expect_str_eq(net->outputs[0].name, "s:1");
    cr_expect_str_eq(net->outputs[1].name, "s");
    cr_expect_eq(net->outputs[2].tensor, out->outputs[0]);
    cr_expect_eq(net->outputs[2].format.dtype, STRATA_FP16);
    strata_network_destroy(net);
}

/* A chain of n layers, written first to last or last to first. */
static char *chain(int n, bool reversed)
{
    char *text = malloc(128 + (size_t)n * 64), *at = text;
    at += sprintf(at, "[network]\nformat = 1\noutputs = l%d\n[input x]\nshape = 1\n",
                  n - 1);
    for (int k = 0; k < n; k++) {
        int i = reversed ? n - 1 - k : k;
        at += sprintf(at, "[layer l%d]\ntype = Pass\n", i);
        at += i ? sprintf(at, "inputs = l%d\n", i - 1) : sprintf(at, "inputs = x\n");
    }
    return text;
}

Test(network, deep_chains_load_in_either_order)
{
    for (int reversed = 0; reversed < 2; reversed++) {
        char *text = chain(65000, reversed);
        strata_network *net = load(text);
        cr_assert_eq(net->n_layers, 65000);
        cr_expect_str_eq(net->layers[0].name, "l0");
        cr_expect_str_eq(net->layers[64999].name, "l64999");
        strata_network_destroy(net);
        free(text);
    }
}

Test(network, a_layer_takes_1024_inputs_and_not_1025)
{
    for (int n = 1024; n <= 1025; n++) {
        char *text = malloc(16384), *at = text;
        at += sprintf(at, "%s[layer out]\ntype = Join\ninputs = x", HEAD);
        for (int i = 1; i < n; i++)
            at += sprintf(at, ",%sx", i % 64 ? "" : "\\\n");
        sprintf(at, "\n");
        if (n == 1024) {
            strata_network *net = load(text);
            expect_dims(net, "out", 2, (int64_t[]){2, 6144});
            strata_network_destroy(net);
        } else {
            const char *message = refused(text);
            cr_expect_not_null(strstr(message, "1025 inputs; at most 1024"), "%s",
                               message);
        }
        free(text);
    }
}
