/* tf_meta_write.c - a graph of variables and a saver.
 *
 *   W                             VariableV2
 *   W/Initializer/zeros           Const       a value that the variable begins with
 *   W/Assign                      Assign      (W, W/Initializer/zeros)
 *   W/read                        Identity    (W)
 *   save/Const                    Const       the prefix; restore feeds it
 *   save/SaveV2/tensor_names, save/SaveV2/shape_and_slices, save/SaveV2, save/control_dependency
 *   save/RestoreV2/tensor_names, save/RestoreV2/shape_and_slices, save/RestoreV2
 *   save/Assign, save/Assign_1 .. Assign     (W, one output of save/RestoreV2)
 *   save/restore_all              NoOp        after all of save/Assign*
 *
 * The numbers of fields are those of TensorFlow's .proto files: NodeDef {1 name  2 op  3 input
 * 5 attr {1 key  2 AttrValue}}, AttrValue {1 list  2 s  3 i  5 b  6 type  7 shape  8 tensor},
 * TensorProto {1 dtype  2 shape  8 string_val}. */
#include "tf_meta.h"

#include "tf_types.h"
#include "wire.h"

#include <stdio.h>
#include <string.h>

#define PRODUCER 21 /* TensorFlow 1.0: every 1.x and 2.x reads it */

static size_t begin_node(struct mr_bytes *b, const char *name, const char *suffix, const char *op)
{
    size_t node = mr_wire_begin(b, 1);
    char full[MR_TENSOR_MAX_NAME + 64];
    snprintf(full, sizeof full, "%s%s", name, suffix);
    mr_wire_put_text(b, 1, full);
    mr_wire_put_text(b, 2, op);
    return node;
}

static void put_input(struct mr_bytes *b, const char *name, const char *suffix)
{
    char full[MR_TENSOR_MAX_NAME + 64];
    snprintf(full, sizeof full, "%s%s", name, suffix);
    mr_wire_put_text(b, 3, full);
}

/* An attribute, up to where its value's field begins. */
static void begin_attr(struct mr_bytes *b, const char *key, size_t marks[2])
{
    marks[0] = mr_wire_begin(b, 5);
    mr_wire_put_text(b, 1, key);
    marks[1] = mr_wire_begin(b, 2);
}

static void end_attr(struct mr_bytes *b, const size_t marks[2])
{
    mr_wire_end(b, marks[1]);
    mr_wire_end(b, marks[0]);
}

static void attr_int(struct mr_bytes *b, const char *key, uint32_t field, uint64_t v)
{
    size_t marks[2];
    begin_attr(b, key, marks);
    mr_wire_put_int(b, field, v);
    end_attr(b, marks);
}

static void attr_type(struct mr_bytes *b, const char *key, int dtype)
{
    attr_int(b, key, 6, mr_tf_type(dtype));
}

static void attr_bool(struct mr_bytes *b, const char *key, int v)
{
    attr_int(b, key, 5, (uint64_t)v);
}

static void attr_text(struct mr_bytes *b, const char *key, const char *v)
{
    size_t marks[2];
    begin_attr(b, key, marks);
    mr_wire_put_text(b, 2, v);
    end_attr(b, marks);
}

static void put_shape(struct mr_bytes *b, uint32_t field, unsigned n_dims, const uint64_t *dims)
{
    size_t shape = mr_wire_begin(b, field);
    for (unsigned d = 0; d < n_dims; d++) {
        size_t dim = mr_wire_begin(b, 2);
        if (dims[d])
            mr_wire_put_int(b, 1, dims[d]);
        mr_wire_end(b, dim);
    }
    mr_wire_end(b, shape);
}

/* "value" of a Const: a tensor of zeros, which needs no values. */
static void attr_zeros(struct mr_bytes *b, const struct mr_tensor *t)
{
    size_t marks[2];
    begin_attr(b, "value", marks);
    size_t tensor = mr_wire_begin(b, 8);
    mr_wire_put_int(b, 1, mr_tf_type(t->dtype));
    put_shape(b, 2, t->n_dims, t->dims);
    mr_wire_end(b, tensor);
    end_attr(b, marks);
}

static int is_variable(const struct mr_tensor *t)
{
    return t->dtype != MR_DT_STRING && mr_tf_type(t->dtype);
}

/* The four nodes of a variable. */
static void put_variable(struct mr_bytes *b, const struct mr_tensor *t)
{
    size_t node = begin_node(b, t->name, "", "VariableV2"), marks[2];
    attr_text(b, "container", "");
    attr_type(b, "dtype", t->dtype);
    begin_attr(b, "shape", marks);
    put_shape(b, 7, t->n_dims, t->dims);
    end_attr(b, marks);
    attr_text(b, "shared_name", "");
    mr_wire_end(b, node);

    node = begin_node(b, t->name, "/Initializer/zeros", "Const");
    attr_type(b, "dtype", t->dtype);
    attr_zeros(b, t);
    mr_wire_end(b, node);

    node = begin_node(b, t->name, "/Assign", "Assign");
    put_input(b, t->name, "");
    put_input(b, t->name, "/Initializer/zeros");
    attr_type(b, "T", t->dtype);
    attr_bool(b, "use_locking", 1);
    attr_bool(b, "validate_shape", 1);
    mr_wire_end(b, node);

    node = begin_node(b, t->name, "/read", "Identity");
    put_input(b, t->name, "");
    attr_type(b, "T", t->dtype);
    mr_wire_end(b, node);
}

/* A Const of strings: one scalar, or one text a variable (NULL: its name). */
static void put_strings(struct mr_bytes *b, const char *name, const struct mr_tensor_table *t,
                        size_t n, const char *text)
{
    size_t node = begin_node(b, name, "", "Const"), marks[2];
    uint64_t dims[1] = {n};
    attr_type(b, "dtype", MR_DT_STRING);
    begin_attr(b, "value", marks);
    size_t tensor = mr_wire_begin(b, 8);
    mr_wire_put_int(b, 1, mr_tf_type(MR_DT_STRING));
    put_shape(b, 2, t ? 1 : 0, dims);
    if (!t)
        mr_wire_put_text(b, 8, text);
    for (size_t i = 0; t && i < t->n; i++)
        if (is_variable(&t->tensors[i]))
            mr_wire_put_text(b, 8, text ? text : t->tensors[i].name);
    mr_wire_end(b, tensor);
    end_attr(b, marks);
    mr_wire_end(b, node);
}

/* The list of types of all variables, packed. */
static void attr_types(struct mr_bytes *b, const struct mr_tensor_table *t)
{
    size_t marks[2];
    begin_attr(b, "dtypes", marks);
    size_t list = mr_wire_begin(b, 1), types = mr_wire_begin(b, 6);
    for (size_t i = 0; i < t->n; i++)
        if (is_variable(&t->tensors[i]))
            mr_wire_put_varint(b, mr_tf_type(t->tensors[i].dtype));
    mr_wire_end(b, types);
    mr_wire_end(b, list);
    end_attr(b, marks);
}

static void put_save(struct mr_bytes *b, const struct mr_tensor_table *t, size_t n)
{
    put_strings(b, "save/SaveV2/tensor_names", t, n, NULL);
    put_strings(b, "save/SaveV2/shape_and_slices", t, n, "");
    size_t node = begin_node(b, "save/SaveV2", "", "SaveV2");
    put_input(b, "save/Const", "");
    put_input(b, "save/SaveV2/tensor_names", "");
    put_input(b, "save/SaveV2/shape_and_slices", "");
    for (size_t i = 0; i < t->n; i++)
        if (is_variable(&t->tensors[i]))
            put_input(b, t->tensors[i].name, "");
    attr_types(b, t);
    mr_wire_end(b, node);
    node = begin_node(b, "save/control_dependency", "", "Identity");
    put_input(b, "save/Const", "");
    put_input(b, "^save/SaveV2", "");
    attr_type(b, "T", MR_DT_STRING);
    mr_wire_end(b, node);
}

static void assign_name(char *out, size_t cap, const char *mark, size_t i)
{
    if (i)
        snprintf(out, cap, "%ssave/Assign_%zu", mark, i);
    else
        snprintf(out, cap, "%ssave/Assign", mark);
}

static void put_restore(struct mr_bytes *b, const struct mr_tensor_table *t, size_t n)
{
    char name[64], output[64] = "save/RestoreV2";
    put_strings(b, "save/RestoreV2/tensor_names", t, n, NULL);
    put_strings(b, "save/RestoreV2/shape_and_slices", t, n, "");
    size_t node = begin_node(b, "save/RestoreV2", "", "RestoreV2"), at = 0;
    put_input(b, "save/Const", "");
    put_input(b, "save/RestoreV2/tensor_names", "");
    put_input(b, "save/RestoreV2/shape_and_slices", "");
    attr_types(b, t);
    mr_wire_end(b, node);
    for (size_t i = 0; i < t->n; i++) {
        if (!is_variable(&t->tensors[i]))
            continue;
        assign_name(name, sizeof name, "", at);
        node = begin_node(b, name, "", "Assign");
        put_input(b, t->tensors[i].name, "");
        if (at)
            snprintf(output, sizeof output, "save/RestoreV2:%zu", at);
        put_input(b, output, "");
        attr_type(b, "T", t->tensors[i].dtype);
        attr_bool(b, "use_locking", 1);
        attr_bool(b, "validate_shape", 1);
        mr_wire_end(b, node);
        at++;
    }
    node = begin_node(b, "save/restore_all", "", "NoOp");
    for (size_t i = 0; i < n; i++) {
        assign_name(name, sizeof name, "^", i);
        put_input(b, name, "");
    }
    mr_wire_end(b, node);
}

/* SaverDef, with the defaults of tf.train.Saver. */
static void put_saver(struct mr_bytes *b)
{
    float hours = 10000;
    uint32_t bits;
    memcpy(&bits, &hours, sizeof bits);
    size_t saver = mr_wire_begin(b, 3);
    mr_wire_put_text(b, 1, "save/Const:0");
    mr_wire_put_text(b, 2, "save/control_dependency:0");
    mr_wire_put_text(b, 3, "save/restore_all");
    mr_wire_put_int(b, 4, 5);
    mr_wire_put_i32(b, 6, bits);
    mr_wire_put_int(b, 7, 2);
    mr_wire_end(b, saver);
}

/* VariableDef {1 variable_name  2 initializer_name  3 snapshot_name  6 initial_value_name
 * 7 trainable}, as bytes in a collection. */
static void put_variable_def(struct mr_bytes *b, const struct mr_tensor *t, int trainable)
{
    char text[MR_TENSOR_MAX_NAME + 64];
    size_t def = mr_wire_begin(b, 1);
    snprintf(text, sizeof text, "%s:0", t->name);
    mr_wire_put_text(b, 1, text);
    snprintf(text, sizeof text, "%s/Assign", t->name);
    mr_wire_put_text(b, 2, text);
    snprintf(text, sizeof text, "%s/read:0", t->name);
    mr_wire_put_text(b, 3, text);
    snprintf(text, sizeof text, "%s/Initializer/zeros:0", t->name);
    mr_wire_put_text(b, 6, text);
    if (trainable)
        mr_wire_put_int(b, 7, 1);
    mr_wire_end(b, def);
}

/* A variable is trained when it has moments beside it. */
static int is_trained(const struct mr_tensor_table *t, const struct mr_tensor *v)
{
    char moment[MR_TENSOR_MAX_NAME + 8];
    snprintf(moment, sizeof moment, "%s/Adam", v->name);
    return mr_tensor_table_find(t, moment) != NULL;
}

static void put_collection(struct mr_bytes *b, const char *name, const struct mr_tensor_table *t,
                           int only_trained)
{
    size_t entry = mr_wire_begin(b, 4);
    mr_wire_put_text(b, 1, name);
    size_t value = mr_wire_begin(b, 2), list = mr_wire_begin(b, 2);
    for (size_t i = 0; i < t->n; i++) {
        int trained = is_trained(t, &t->tensors[i]);
        if (is_variable(&t->tensors[i]) && (trained || !only_trained))
            put_variable_def(b, &t->tensors[i], trained);
    }
    mr_wire_end(b, list);
    mr_wire_end(b, value);
    mr_wire_end(b, entry);
}

int mr_tf_meta_write(const struct mr_tensor_table *t, struct mr_bytes *out)
{
    size_t n = 0;
    size_t info = mr_wire_begin(out, 1);
    mr_wire_put_text(out, 4, "train");
    mr_wire_put_text(out, 5, "1.0.0");
    mr_wire_end(out, info);
    size_t graph = mr_wire_begin(out, 2);
    for (size_t i = 0; i < t->n; i++)
        if (is_variable(&t->tensors[i])) {
            put_variable(out, &t->tensors[i]);
            n++;
        }
    put_strings(out, "save/Const", NULL, 0, "model");
    put_save(out, t, n);
    put_restore(out, t, n);
    size_t versions = mr_wire_begin(out, 4);
    mr_wire_put_int(out, 1, PRODUCER);
    mr_wire_end(out, versions);
    mr_wire_end(out, graph);
    put_saver(out);
    put_collection(out, "trainable_variables", t, 1);
    put_collection(out, "variables", t, 0);
    return out->error;
}
