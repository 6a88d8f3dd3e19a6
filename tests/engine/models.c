/* SPDX-License-Identifier: Apache-2.0
 *
 * Networks that others trained, against the answers their own frameworks gave, through
 * the public API alone.
 */
#include "tests/engine/session.h"
#include "tests/engine/yolo_boxes.h"
#include "tests/support/models.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- comparing --------------------------------------------------------------------- */

/* Largest difference, relative to the largest expected value; infinite for a NaN. */
static double worst_error(const float *found, const float *expected, size_t count)
{
    double error = 0, largest = 0;
    for (size_t i = 0; i < count; i++) {
        double e = fabs((double)found[i] - (double)expected[i]);
        error = e <= error ? error : isnan(e) ? (double)INFINITY : e;
        largest = fmax(largest, fabs((double)expected[i]));
    }
    return error / largest;
}

static void expect_close(const struct variant *f, const char *what, const float *found,
                         const float *expected, size_t count)
{
    double error = worst_error(found, expected, count);
    cr_expect(error >= f->least && error <= f->bound,
              "%s, %s: relative error %g is not in %g to %g", f->name, what, error,
              f->least, f->bound);
}

static int best(const float *scores, int n)
{
    int top = 0;
    for (int i = 1; i < n; i++)
        top = scores[i] > scores[top] ? i : top;
    return top;
}

/* ---- the networks ---------------------------------------------------------------- */

TestSuite(models, .fini = remove_scratch, .timeout = 600);

/* The example of examples/digits: trained in this repository, its data beside it. */
Test(models, digits_example_gets_356_of_359_images)
{
    enum { IMAGES = 359, PIXELS = 8 * 8 };
    char folder[TEXT], path[TEXT];
    const char *source = getenv("srcdir");
    join(folder, source ? source : ".", "examples/digits", "");
    join(path, folder, "digits", ".ini");
    uint8_t *images =
        read_array(folder, "digits-test-images.idx", 16, IMAGES * PIXELS, 1);
    uint8_t *labels = read_array(folder, "digits-test-labels.idx", 8, IMAGES, 1);
    for (int i = 0; i < VARIANTS; i++) {
        struct session s;
        int right = 0;
        session_open(&s, path, &variants[i], IMAGES);
        float *in = session_data(&s, "image", IMAGES * PIXELS);
        for (int p = 0; p < IMAGES * PIXELS; p++)
            in[p] = (float)images[p] / 240;
        session_run(&s);
        session_check_file(&s);
        const float *prob = session_data(&s, "prob", IMAGES * 10);
        for (int k = 0; k < IMAGES; k++)
            right += best(prob + 10 * k, 10) == labels[k];
        cr_expect(right == 356, "%s: %d right, not 356", s.name, right);
        session_close(&s);
    }
    free(images);
    free(labels);
}

enum { DIGITS = 10000, DIGIT_BATCH = 100, DIGIT = 28 * 28 };

/* Right answers over the whole MNIST test split. */
static int count_right_digits(const struct variant *f, const uint8_t *images,
                              const uint8_t *labels)
{
    struct session s;
    int right = 0;
    session_open(&s, ini, f, DIGIT_BATCH);
    for (int i = 0; i < DIGITS; i += DIGIT_BATCH) {
        float *in = session_data(&s, "image", DIGIT_BATCH * DIGIT);
        for (int p = 0; p < DIGIT_BATCH * DIGIT; p++)
            in[p] = images[i * DIGIT + p];
        session_run(&s);
        const float *out = session_data(&s, "logits", DIGIT_BATCH * 10);
        for (int k = 0; k < DIGIT_BATCH; k++)
            right += best(out + 10 * k, 10) == labels[i + k];
    }
    session_close(&s);
    return right;
}

Test(models, mnist_cntk_gets_9891_of_10000_digits)
{
    need_model("mnist_cntk");
    uint8_t *images = read_array(scratch, "mnist-test-images.idx", 16, DIGITS * DIGIT, 1);
    uint8_t *labels = read_array(scratch, "mnist-test-labels.idx", 8, DIGITS, 1);
    for (int i = 0; i < VARIANTS; i++) {
        int right = count_right_digits(&variants[i], images, labels);
        if (variants[i].exact)
            cr_expect(right == 9891, "%s: %d right, not 9891", variants[i].name, right);
        else
            cr_expect(right >= 9885, "%s: %d right, fewer than 9885", variants[i].name,
                      right);
    }
    free(images);
    free(labels);
}

Test(models, mnist_cntk_logits_match)
{
    enum { COUNT = 1000 };
    need_model("mnist_cntk");
    char folder[TEXT];
    join(folder, models, "mnist_cntk", "");
    uint8_t *images =
        read_array(folder, "images_first1000x1x28x28.u8", 0, COUNT * DIGIT, 1);
    float *expected = read_array(folder, "expected_logits_first1000x10.f32", 0,
                                 COUNT * 10, sizeof(float));
    for (int i = 0; i < VARIANTS; i++) {
        struct session s;
        session_open(&s, ini, &variants[i], COUNT);
        float *in = session_data(&s, "image", COUNT * DIGIT);
        for (int p = 0; p < COUNT * DIGIT; p++)
            in[p] = images[p];
        session_run(&s);
        expect_close(&variants[i], "logits", session_data(&s, "logits", COUNT * 10),
                     expected, COUNT * 10);
        session_close(&s);
    }
    free(images);
    free(expected);
}

/* The k-th class of a photo in expected_top5.tsv. */
static int expected_class(const char *table, const char *photo, int k)
{
    size_t length = strlen(photo);
    for (const char *line = table; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (!strncmp(line, photo, length) && line[length] == '\t' && !k--)
            return atoi(line + length + 1);
    }
    cr_assert_fail("expected_top5.tsv has too few rows of %s", photo);
    return -1;
}

static void expect_top5(const struct session *s, const char *table, const char *photo,
                        const float *prob)
{
    float left[1000];
    memcpy(left, prob, sizeof left);
    for (int k = 0; k < 5; k++) {
        int found = best(left, 1000), expected = expected_class(table, photo, k);
        cr_expect(found == expected, "%s, %s: class %d at place %d, not %d", s->name,
                  photo, found, k + 1, expected);
        left[found] = -1;
    }
}

Test(models, squeezenet_matches_with_the_expected_top5)
{
    enum { PIXELS = 3 * 227 * 227 };
    static const char *const photos[] = {"dog", "eagle", "grace_hopper"};
    char folder[TEXT], name[TEXT];
    size_t size;
    need_model("squeezenet_v1.1");
    join(folder, models, "squeezenet_v1.1", "");
    char *table = read_file(folder, "expected_top5.tsv", &size);
    for (int i = 0; i < VARIANTS; i++) {
        struct session s;
        session_open(&s, ini, &variants[i], 1);
        for (size_t p = 0; p < 3; p++) {
            snprintf(name, sizeof name, "input_%s_1x3x227x227.f32", photos[p]);
            float *input = read_array(folder, name, 0, PIXELS, sizeof(float));
            snprintf(name, sizeof name, "expected_%s_prob_1000.f32", photos[p]);
            float *expected = read_array(folder, name, 0, 1000, sizeof(float));
            memcpy(session_data(&s, "data", PIXELS), input, PIXELS * sizeof(float));
            session_run(&s);
            if (p == 0)
                session_check_file(&s);
            const float *prob = session_data(&s, "prob", 1000);
            expect_close(&variants[i], photos[p], prob, expected, 1000);
            cr_expect(best(prob, 1000) == best(expected, 1000), "%s, %s: top class",
                      s.name, photos[p]);
            if (variants[i].exact)
                expect_top5(&s, table, photos[p], prob);
            free(input);
            free(expected);
        }
        session_close(&s);
    }
    free(table);
}

static void normalise(float *out, const uint8_t *pixels, int images, int plane)
{
    static const float mean[] = {0.485f, 0.456f, 0.406f},
                       std[] = {0.229f, 0.224f, 0.225f};
    for (int i = 0; i < images * 3 * plane; i++) {
        int c = i / plane % 3;
        out[i] = ((float)pixels[i] / 255.0f - mean[c]) / std[c];
    }
}

Test(models, resnet20_gets_160_of_200_images)
{
    enum { IMAGES = 200, PLANE = 32 * 32 };
    char folder[TEXT];
    need_model("resnet20_cifar10");
    join(folder, models, "resnet20_cifar10", "");
    uint8_t *images =
        read_array(folder, "images_200x3x32x32.u8", 0, IMAGES * 3 * PLANE, 1);
    uint8_t *labels = read_array(folder, "labels_200.u8", 0, IMAGES, 1);
    float *expected =
        read_array(folder, "expected_logits_200x10.f32", 0, IMAGES * 10, sizeof(float));
    for (int i = 0; i < VARIANTS; i++) {
        struct session s;
        int right = 0;
        session_open(&s, ini, &variants[i], IMAGES);
        normalise(session_data(&s, "image", IMAGES * 3 * PLANE), images, IMAGES, PLANE);
        session_run(&s);
        session_check_file(&s);
        const float *logits = session_data(&s, "logits", IMAGES * 10);
        expect_close(&variants[i], "logits", logits, expected, IMAGES * 10);
        for (int k = 0; k < IMAGES; k++)
            right += best(logits + 10 * k, 10) == labels[k];
        if (variants[i].exact)
            cr_expect(right == 160, "%s: %d right, not 160", s.name, right);
        session_close(&s);
    }
    free(images);
    free(labels);
    free(expected);
}

static int read_boxes(struct yolo_box *boxes, const char *table, const char *photo)
{
    char name[32];
    struct yolo_box b;
    int n = 0;
    for (const char *line = table; line && n < YOLO_BOXES; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (sscanf(line, "%31s %lf %d %*s %lf %lf %lf %lf", name, &b.score, &b.class,
                   &b.cx, &b.cy, &b.w, &b.h) == 7 &&
            !strcmp(name, photo))
            boxes[n++] = b;
    }
    cr_assert(n > 0, "expected_detections.tsv has no rows of %s", photo);
    return n;
}

/* The table has five decimals. */
static void expect_boxes(const struct yolo_box *found, int n, const char *table,
                         const char *photo)
{
    struct yolo_box expected[YOLO_BOXES];
    int m = read_boxes(expected, table, photo);
    cr_expect(n == m, "%s: %d boxes, not %d", photo, n, m);
    for (int i = 0; i < n && i < m; i++) {
        const struct yolo_box *f = &found[i], *e = &expected[i];
        double distance = fmax(fmax(fabs(f->cx - e->cx), fabs(f->cy - e->cy)),
                               fmax(fabs(f->w - e->w), fabs(f->h - e->h)));
        cr_expect(f->class == e->class && fabs(f->score - e->score) < 1e-4 &&
                      distance < 1e-4,
                  "%s, box %d: class %d score %.5f, not class %d score %.5f; %g apart",
                  photo, i, f->class, f->score, e->class, e->score, distance);
    }
}

/* Both maps of one photo against the expected, and the boxes decoded from them. */
static int run_photo(struct session *s, const struct variant *f, const char *folder,
                     const char *photo, struct yolo_box *boxes)
{
    enum { PIXELS = 3 * 320 * 320 };
    static const char *const layers[YOLO_HEADS] = {"layer120", "layer129"};
    const float *maps[YOLO_HEADS];
    char name[TEXT];
    snprintf(name, sizeof name, "input_%s_1x3x320x320.f32", photo);
    float *input = read_array(folder, name, 0, PIXELS, sizeof(float));
    memcpy(session_data(s, "image", PIXELS), input, PIXELS * sizeof(float));
    session_run(s);
    for (int h = 0; h < YOLO_HEADS; h++) {
        int cells = yolo_heads[h].cells;
        size_t count = (size_t)(YOLO_CHANNELS * cells * cells);
        snprintf(name, sizeof name, "expected_%s_head_%s_1x255x%dx%d.f32", photo,
                 layers[h], cells, cells);
        float *expected = read_array(folder, name, 0, count, sizeof(float));
        maps[h] = session_data(s, yolo_heads[h].output, count);
        expect_close(f, name, maps[h], expected, count);
        free(expected);
    }
    free(input);
    return yolo_decode(boxes, maps, YOLO_LEAST);
}

Test(models, yolo_fastest_finds_the_expected_boxes)
{
    static const char *const photos[] = {"dog", "person"};
    struct yolo_box found[YOLO_BOXES];
    char folder[TEXT];
    size_t size;
    need_model("yolo-fastest-1.1");
    join(folder, models, "yolo-fastest-1.1", "");
    char *table = read_file(folder, "expected_detections.tsv", &size);
    for (int i = 0; i < VARIANTS; i++) {
        struct session s;
        session_open(&s, ini, &variants[i], 1);
        for (size_t p = 0; p < 2; p++) {
            int n = run_photo(&s, &variants[i], folder, photos[p], found);
            if (variants[i].exact)
                expect_boxes(found, n, table, photos[p]);
        }
        session_close(&s);
    }
    free(table);
}
