/* SPDX-License-Identifier: Apache-2.0
 *
 * Boxes of the YOLO-Fastest detector, as its tests read them from the output maps.
 */
#ifndef TESTS_ENGINE_YOLO_BOXES_H
#define TESTS_ENGINE_YOLO_BOXES_H

enum { YOLO_HEADS = 2, YOLO_CHANNELS = 255, YOLO_BOXES = 64 };

struct yolo_box {
    double score, cx, cy, w, h; /* centre and size, fractions of the image */
    int class;
};

struct yolo_head {
    const char *output;   /* name in the network */
    int cells;            /* per side */
    double anchors[3][2]; /* width and height, pixels of the input image */
};
extern const struct yolo_head yolo_heads[YOLO_HEADS];

#define YOLO_LEAST 0.3 /* score of the boxes that are expected */

/* Boxes of one image that score above the least, best first, none covering a better one
 * of its class by more than 0.45 (intersection over union). maps[i] holds YOLO_CHANNELS
 * planes of yolo_heads[i]. Returns their number, -1 if there are more than YOLO_BOXES. */
int yolo_decode(struct yolo_box boxes[YOLO_BOXES], const float *const maps[YOLO_HEADS],
                double least);

#endif /* TESTS_ENGINE_YOLO_BOXES_H */
