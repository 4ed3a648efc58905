# tf-tools: one Makefile, no recursion. Programs are whatever bin/*.c holds; outputs go to $(BUILD).
#   make [all]   programs, libraries, man pages        make demo    train the examples through pipes
#   make check   all tests                             make lint    style, headers, shellcheck
#   make fuzz    libFuzzer targets, FUZZ_SECONDS each  make bench   speed, beside PyTorch
#   make install PREFIX=/usr/local                     make clean
# SANITIZE=address,undefined or SANITIZE=thread builds into its own folder.
CC ?= gcc
PREFIX ?= /usr/local
SANITIZE ?=
BUILD ?= build$(if $(SANITIZE),/$(subst $(comma),-,$(SANITIZE)))
comma := ,

WARN := -Wall -Wextra -Werror -Wmissing-prototypes -Wstrict-prototypes -Wvla -Wpointer-arith -Wshadow
# No strict aliasing: tensor memory is viewed under many types. No contraction: a value must not
# depend on whether the compiler found a fused multiply-add.
CFLAGS ?= -O2 -g
BASE_CFLAGS := -std=c11 -D_GNU_SOURCE -fno-strict-aliasing -ffp-contract=off -fPIC -pthread \
	-fvisibility=default $(WARN) -Ilibcommon -I.
BASE_LDFLAGS := -pthread -Wl,--allow-shlib-undefined
ifneq ($(SANITIZE),)
BASE_CFLAGS += -fsanitize=$(SANITIZE) -fno-omit-frame-pointer -fno-sanitize-recover=undefined
BASE_LDFLAGS += -fsanitize=$(SANITIZE)
endif
LUA_CFLAGS := $(shell pkg-config --cflags lua5.4 2>/dev/null || echo -I/usr/include/lua5.4)
LIB_LIBS := -llua5.4 -lmsgpackc -lz -lm -ldl

# The library: everything but kernels. Kernels go to a module per device, loaded when it is asked for.
LIB_SRC := $(filter-out %_cpu.c,$(wildcard libcommon/*/*.c ops/*/*.c ops/*.c transport/*.c ps/*.c checkpoint/*.c))
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/obj/%.o)
LIB := $(BUILD)/lib/libtf-tools.so
CPU_SRC := $(wildcard ops/*/*_cpu.c)
# One build of the CPU kernels per instruction set; the best one that the machine has is loaded.
CPU_ISAS ?= $(if $(SANITIZE),base,$(if $(filter x86_64,$(shell uname -m)),base v3 v4,base))
ISA_CFLAGS_base :=
ISA_CFLAGS_v3 := -march=x86-64-v3
ISA_CFLAGS_v4 := -march=x86-64-v4 -mprefer-vector-width=512
CPU_MODULES := $(CPU_ISAS:%=$(BUILD)/lib/tf-tools/cpu-%.so)
BLAS_DIR := $(firstword $(wildcard /usr/lib/$(shell uname -m)-linux-gnu/openblas-openmp /usr/lib/*/openblas-openmp))
CPU_LIBS := $(if $(BLAS_DIR),-L$(BLAS_DIR) -Wl$(comma)-rpath$(comma)$(BLAS_DIR)) -lopenblas -ldnnl -lm
CPU_CFLAGS := $(if $(BLAS_DIR),-I$(BLAS_DIR:/usr/lib/%=/usr/include/%))

BINS := $(patsubst bin/%.c,$(BUILD)/bin/%,$(wildcard bin/*.c))
UNIT_TESTS := $(patsubst tests/unit/%.c,$(BUILD)/tests/unit/%,$(wildcard tests/unit/*.c))

.DELETE_ON_ERROR:
.PHONY: all lib unit clean
all: $(BINS) $(CPU_MODULES)
lib: $(LIB) $(CPU_MODULES)
unit: $(UNIT_TESTS)

$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(BASE_CFLAGS) $(CFLAGS) $(LUA_CFLAGS) -MMD -MP -c $< -o $@
$(LIB): $(LIB_OBJ)
	@mkdir -p $(@D)
	$(CC) -shared $(BASE_LDFLAGS) $^ -o $@ $(LIB_LIBS)
$(BUILD)/bin/%: bin/%.c $(LIB)
	@mkdir -p $(@D) $(BUILD)/obj/bin
	$(CC) $(BASE_CFLAGS) $(CFLAGS) -MMD -MP -MF $(BUILD)/obj/bin/$*.d $(BASE_LDFLAGS) $< -o $@ \
		-L$(BUILD)/lib -ltf-tools -lmsgpackc '-Wl,-rpath,$$ORIGIN/../lib'
$(BUILD)/tests/unit/%: tests/unit/%.c $(LIB)
	@mkdir -p $(@D) $(BUILD)/obj/tests/unit
	$(CC) $(BASE_CFLAGS) $(CFLAGS) -Itests -MMD -MP -MF $(BUILD)/obj/tests/unit/$*.d $(BASE_LDFLAGS) $< -o $@ \
		-L$(BUILD)/lib -ltf-tools -lmsgpackc -lcmocka -lm '-Wl,-rpath,$$ORIGIN/../../lib'
define CPU_RULES
$(BUILD)/obj/cpu-$(1)/%.o: %.c
	@mkdir -p $$(@D)
	$$(CC) $$(BASE_CFLAGS) $$(CFLAGS) -O3 -fno-math-errno -fno-trapping-math -fopenmp $$(CPU_CFLAGS) $$(ISA_CFLAGS_$(1)) -MMD -MP -c $$< -o $$@
$(BUILD)/lib/tf-tools/cpu-$(1).so: $(CPU_SRC:%.c=$(BUILD)/obj/cpu-$(1)/%.o) $(LIB)
	@mkdir -p $$(@D)
	$$(CC) -shared -fopenmp $$(BASE_LDFLAGS) $$(filter %.o,$$^) -o $$@ -L$(BUILD)/lib -ltf-tools $$(CPU_LIBS) '-Wl,-rpath,$$$$ORIGIN/..'
endef
$(foreach isa,$(CPU_ISAS),$(eval $(call CPU_RULES,$(isa))))

clean:
	rm -rf build
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
