/* SPDX-License-Identifier: Apache-2.0
 *
 * Networks that others trained, quantised by the command and run through the public API:
 * what they lose against their own floats. STRATA_TEST_LONG takes all of the images.
 */
#include "tests/engine/session.h"
#include "tests/engine/yolo_boxes.h"
#include "tests/support/models.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char int8[TEXT]; /* the quantised network's INI file */

TestSuite(quantised_models, .fini = remove_scratch, .timeout = 600);

/* With up to four more words, ended by NULL. */
static void quantise(const char *data, const char *samples, const char *const *more)
{
    char command[TEXT];
    const char *build = getenv("builddir");
    join(command, build ? build : ".", "strata", "");
    join(int8, scratch, "int8.ini", "");
    const char *arguments[16] = {command,     "quantise", ini,  "--data", data,
                                 "--samples", samples,    "-o", int8};
    for (int i = 9; *more; i++)
        arguments[i] = *more++;
    cr_assert(run_quietly((char *const *)arguments) == 0, "%s quantise failed", command);
}

static const char *const nothing_more[] = {NULL};

static int best(const float *scores, int n)
{
    int top = 0;
    for (int i = 1; i < n; i++)
        top = scores[i] > scores[top] ? i : top;
    return top;
}

/* Images, right by the labels, of one network. */
static int count_right(const char *network, int batch, const float *images, size_t pixels,
                       const uint8_t *labels, int n)
{
    struct session s;
    int right = 0;
    session_open(&s, network, &variants[0], batch);
    for (int i = 0; i < n; i++) {
        memcpy(session_data(&s, "image", pixels), images + (size_t)i * pixels,
               pixels * sizeof *images);
        session_run(&s);
        right += best(session_data(&s, "logits", 10), 10) == labels[i];
    }
    session_close(&s);
    return right;
}

static float *floats(size_t n)
{
    float *v = malloc(n * sizeof *v);
    cr_assert(v);
    return v;
}

Test(quantised_models, mnist_cntk_loses_5_of_10000_digits_at_most)
{
    enum { DIGITS = 10000, DIGIT = 28 * 28 };
    char data[TEXT];
    need_model("mnist_cntk");
    const int n = getenv("STRATA_TEST_LONG") ? DIGITS : 1000;
    uint8_t *pixels = read_array(scratch, "mnist-test-images.idx", 16, DIGITS * DIGIT, 1);
    uint8_t *labels = read_array(scratch, "mnist-test-labels.idx", 8, DIGITS, 1);
    float *images = floats((size_t)n * DIGIT);
    for (int i = 0; i < n * DIGIT; i++)
        images[i] = pixels[i];
    /* Ranges are of 100 images, the first of a file of their own. */
    join(data, scratch, "few.idx", "");
    FILE *f = fopen(data, "wb");
    const uint8_t head[16] = {0, 0, 8, 3, 0, 0, 0, 100, 0, 0, 0, 28, 0, 0, 0, 28};
    cr_assert(f && fwrite(head, 1, 16, f) == 16 &&
              fwrite(pixels, 1, 100 * DIGIT, f) == 100 * DIGIT && !fclose(f));
    quantise(data, "100", nothing_more);
    const int was = count_right(ini, 1, images, DIGIT, labels, n);
    const int is = count_right(int8, 0, images, DIGIT, labels, n);
    cr_expect(was == (n == DIGITS ? 9891 : 987), "%d right in floats", was);
    cr_expect(is >= was - (n == DIGITS ? 5 : 1), "%d of %d right in int8, %d in floats",
              is, n, was);
    free(pixels);
    free(labels);
    free(images);
}

/* A PPM of three planes. */
static void write_image(const char *folder, int i, const uint8_t *planes, int side)
{
    char name[32], path[TEXT];
    snprintf(name, sizeof name, "%04d.ppm", i);
    join(path, folder, name, "");
    FILE *f = fopen(path, "wb");
    cr_assert(f && fprintf(f, "P6\n%d %d\n255\n", side, side) > 0);
    for (int p = 0; p < side * side; p++)
        for (int c = 0; c < 3; c++)
            fputc(planes[c * side * side + p], f);
    cr_assert(!fclose(f));
}

Test(quantised_models, resnet20_loses_2_of_200_images_at_most)
{
    enum { IMAGES = 200, SIDE = 32, PLANE = SIDE * SIDE, PIXELS = 3 * PLANE };
    static const float mean[] = {0.485f, 0.456f, 0.406f},
                       std[] = {0.229f, 0.224f, 0.225f};
    char folder[TEXT], data[TEXT];
    need_model("resnet20_cifar10");
    const int used = getenv("STRATA_TEST_LONG") ? IMAGES : 40;
    join(folder, models, "resnet20_cifar10", "");
    uint8_t *pixels = read_array(folder, "images_200x3x32x32.u8", 0, IMAGES * PIXELS, 1);
    uint8_t *labels = read_array(folder, "labels_200.u8", 0, IMAGES, 1);
    float *images = floats((size_t)IMAGES * PIXELS);
    join(data, scratch, "images", "");
    cr_assert(!mkdir(data, 0755));
    for (int i = 0; i < IMAGES * PIXELS; i++) {
        const int c = i / PLANE % 3;
        images[i] = ((float)pixels[i] / 255.0f - mean[c]) / std[c];
    }
    for (int i = 0; i < used; i++)
        write_image(data, i, pixels + i * (IMAGES / used) * PIXELS, SIDE);
    quantise(data, "200", nothing_more);
    const int was = count_right(ini, 1, images, PIXELS, labels, IMAGES);
    const int is = count_right(int8, 0, images, PIXELS, labels, IMAGES);
    cr_expect(was == 160, "%d right in floats", was);
    cr_expect(is >= was - 2, "%d right in int8, %d in floats", is, was);
    free(pixels);
    free(labels);
    free(images);
}

/* Photos of the models' folder, as `strata run` reads them. */
static void photo_folder(char out[TEXT])
{
    join(out, models, "photos", "");
}

Test(quantised_models, squeezenet_names_the_same_class)
{
    enum { PIXELS = 3 * 227 * 227 };
    static const char *const photos[] = {"dog", "eagle", "grace_hopper"};
    char folder[TEXT], name[TEXT], data[TEXT];
    struct session s;
    need_model("squeezenet_v1.1");
    join(folder, models, "squeezenet_v1.1", "");
    photo_folder(data);
    quantise(data, "4", nothing_more);
    session_open(&s, int8, &variants[0], 0);
    for (size_t p = 0; p < 3; p++) {
        snprintf(name, sizeof name, "input_%s_1x3x227x227.f32", photos[p]);
        float *input = read_array(folder, name, 0, PIXELS, sizeof(float));
        snprintf(name, sizeof name, "expected_%s_prob_1000.f32", photos[p]);
        float *expected = read_array(folder, name, 0, 1000, sizeof(float));
        memcpy(session_data(&s, "data", PIXELS), input, PIXELS * sizeof(float));
        session_run(&s);
        const int found = best(session_data(&s, "prob", 1000), 1000);
        cr_expect(found == best(expected, 1000), "%s: class %d, not %d", photos[p], found,
                  best(expected, 1000));
        free(input);
        free(expected);
    }
    session_close(&s);
}

static double overlap(const struct yolo_box *a, const struct yolo_box *b)
{
    const double w = fmin(a->cx + a->w / 2, b->cx + b->w / 2) -
                     fmax(a->cx - a->w / 2, b->cx - b->w / 2);
    const double h = fmin(a->cy + a->h / 2, b->cy + b->h / 2) -
                     fmax(a->cy - a->h / 2, b->cy - b->h / 2);
    const double both = w > 0 && h > 0 ? w * h : 0;
    return both / (a->w * a->h + b->w * b->h - both);
}

/* What 8 bits may add to a score, or take: those of 0.31 and 0.297 fall on either side of
 * the least, as each CPU rounds the floats before them. */
#define DOUBT 0.05

/* The most that a box of the list overlaps this one, of its class. */
static double met(const struct yolo_box *b, const struct yolo_box *list, int n)
{
    double most = 0;
    for (int i = 0; i < n; i++)
        if (list[i].class == b->class)
            most = fmax(most, overlap(&list[i], b));
    return most;
}

/* Each box of the table is found, of its class, at its place, and no other but in doubt.
 */
static void expect_boxes(const struct yolo_box *found, int n, const char *table,
                         const char *photo)
{
    struct yolo_box expected[YOLO_BOXES];
    int m = 0;
    for (const char *line = table; line && m < YOLO_BOXES; line = strchr(line, '\n')) {
        struct yolo_box b;
        char name[32];
        line += *line == '\n';
        if (sscanf(line, "%31s %lf %d %*s %lf %lf %lf %lf", name, &b.score, &b.class,
                   &b.cx, &b.cy, &b.w, &b.h) != 7 ||
            strcmp(name, photo) != 0)
            continue;
        expected[m++] = b;
        cr_expect(met(&b, found, n) >= 0.7, "%s: class %d, score %.3f, is met by %.2f",
                  photo, b.class, b.score, met(&b, found, n));
    }
    cr_assert(m > 0, "no rows of %s", photo);
    cr_assert_geq(n, 0, "%s: too many boxes", photo);
    for (int i = 0; i < n; i++)
        cr_expect(found[i].score < YOLO_LEAST + DOUBT ||
                      met(&found[i], expected, m) >= 0.7,
                  "%s: class %d, score %.3f, is not in the table", photo, found[i].class,
                  found[i].score);
}

/* `--sensitivity` tells which of the 84 layers hurts most by far: that one is kept. */
Test(quantised_models, yolo_fastest_finds_the_expected_boxes)
{
    static const char *const more[] = {"--method", "percentile", "--keep",
                                       "block1.depthwise", NULL};
    enum { PIXELS = 3 * 320 * 320 };
    static const char *const photos[] = {"dog", "person"};
    struct yolo_box found[YOLO_BOXES];
    char folder[TEXT], name[TEXT], data[TEXT];
    struct session s;
    size_t size;
    need_model("yolo-fastest-1.1");
    join(folder, models, "yolo-fastest-1.1", "");
    photo_folder(data);
    quantise(data, "4", more);
    char *table = read_file(folder, "expected_detections.tsv", &size);
    session_open(&s, int8, &variants[0], 0);
    for (size_t p = 0; p < 2; p++) {
        const float *maps[YOLO_HEADS];
        snprintf(name, sizeof name, "input_%s_1x3x320x320.f32", photos[p]);
        float *input = read_array(folder, name, 0, PIXELS, sizeof(float));
        memcpy(session_data(&s, "image", PIXELS), input, PIXELS * sizeof(float));
        session_run(&s);
        for (int h = 0; h < YOLO_HEADS; h++)
            maps[h] = session_data(
                &s, yolo_heads[h].output,
                (size_t)(YOLO_CHANNELS * yolo_heads[h].cells * yolo_heads[h].cells));
        expect_boxes(found, yolo_decode(found, maps, YOLO_LEAST - DOUBT), table,
                     photos[p]);
        free(input);
    }
    session_close(&s);
    free(table);
}
