/* SPDX-License-Identifier: Apache-2.0
 *
 * ONNX's published cases (Debian's libonnx-testdata): every model is read, and every
 * value that its model calls a tensor, as the type that it says. A sequence or optional
 * value is no TensorProto. Then models with bits flipped.
 */
#include <ftw.h>

#include "tests/io/onnx_text.h"

#define FOLDER "/usr/share/libonnx-testdata/data"

TestSuite(onnx_data, .timeout = 3600);

static size_t models, tensors, left_out;

static void read_tensor(const char *path, const struct onnx_value *v)
{
    strata_error err = {0};
    const struct onnx_model *m = NULL;
    if (v->form != ONNX_TENSOR) {
        left_out++;
        return;
    }
    cr_expect_eq(onnx_open_tensor(&m, path, NULL, &err), STRATA_OK, "%s", err.message);
    if (m) {
        const struct onnx_tensor *t = m->graph.initializers;
        /* The files of BF16 are older than NumPy's. */
        const bool bits = v->type == ONNX_BFLOAT16 && t->type == ONNX_UINT16;
        cr_expect(t->type == v->type || bits, "%s: type %s, not %s", path,
                  onnx_type_name(t->type), onnx_type_name(v->type));
        tensors++;
    }
    onnx_close(m);
}

/* input_0.pb ... of each data set, by the graph's values. */
static void read_values(const char *folder, const char *stem, const struct onnx_value *v,
                        size_t n)
{
    char path[4200];
    for (int set = 0; set < 10; set++)
        for (size_t i = 0; i < n; i++) {
            snprintf(path, sizeof path, "%s/test_data_set_%d/%s_%zu.pb", folder, set,
                     stem, i);
            if (access(path, R_OK) == 0)
                read_tensor(path, &v[i]);
        }
}

static int read_model(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    strata_error err = {0};
    const struct onnx_model *m = NULL;
    char folder[4096];
    if (kind != FTW_F || strcmp(path + at->base, "model.onnx") != 0)
        return 0;
    cr_expect_eq(onnx_open(&m, path, NULL, &err), STRATA_OK, "%s", err.message);
    if (!m)
        return 0;
    models++;
    snprintf(folder, sizeof folder, "%.*s", at->base - 1, path);
    cr_expect(m->graph.n_nodes > 0 && m->n_opsets > 0, "%s", path);
    read_values(folder, "input", m->graph.inputs, m->graph.n_inputs);
    read_values(folder, "output", m->graph.outputs, m->graph.n_outputs);
    onnx_close(m);
    return 0;
}

static const char *data_folder(void)
{
    const char *folder = env_or("STRATA_ONNX_DATA", FOLDER);
    if (access(folder, R_OK) != 0)
        cr_skip_test("%s is absent (libonnx-testdata); STRATA_ONNX_DATA names another",
                     folder);
    return folder;
}

Test(onnx_data, every_published_model_is_read)
{
    cr_assert_eq(nftw(data_folder(), read_model, 16, FTW_PHYS), 0);
    cr_expect(models > 900 && tensors > 2000 && left_out < models / 10,
              "%zu models, %zu tensors, %zu left out", models, tensors, left_out);
}

/* Bits at equal distances over the file, or every one where it is small. */
static void flip(const char *folder, const char *name, size_t count)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/%s/model.onnx", folder, name);
    if (access(path, R_OK) != 0)
        return;
    struct blob b = slurp(path);
    const size_t bits = 8 * b.size, n = count < bits ? count : bits;
    for (size_t i = 0; i < n; i++) {
        const size_t bit = (size_t)((double)bits * (double)i / (double)n);
        strata_error err = {0};
        const struct onnx_model *m = NULL;
        b.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        cr_expect_eq(onnx_parse(&m, b.bytes, b.size, "flip", NULL, &err), err.status);
        cr_expect_eq(m == NULL, err.status != STRATA_OK, "%s, bit %zu", name, bit);
        onnx_close(m);
        b.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    free(b.bytes);
}

Test(onnx_data, flipped_bits_do_no_harm)
{
    static const char *const names[] = {"node/test_lstm_defaults", "node/test_loop11",
                                        "node/test_center_crop_pad_crop_expanded",
                                        "pytorch-converted/test_Conv2d"};
    const char *folder = data_folder();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        flip(folder, names[i], 8000);
}
