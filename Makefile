# tf-tools: one Makefile, no recursion. Programs are whatever bin/*.c holds; outputs go to $(BUILD).
# `make help` prints these lines.
#   make [all]   programs, libraries, man pages        make demo    train the examples through pipes
#   make check   the tests, fifteen minutes             make lint    style, headers, shellcheck
#   make check-sanitizers  unit tests under ASan, UBSan and TSan, and what fuzzing found
#   make check-device      most of them again, on a device with memory of its own
#   make check-portable    clang, arm64 in an emulator, musl: docs/portability.md
#   make flickers  the tests that wait for something, with random pauses in all programs
#   make hooks   lint before each commit, by a hook of git
#   make chaos   faults in every phase of a job, crowds, networks: half an hour
#   make signals every program in each state of its life is sent each signal: some minutes
#   make digests  sums of graphs, and of variables after 50 steps, for comparing builds: BASE=FOLDER
#   make report-structure  sizes, cycles of files, words: each with its limit
#   make mutants ROOM=libcommon/wire   a token changed at a time: do its tests fail? N=50 SEED=1
#   make fuzz    libFuzzer targets, FUZZ_SECONDS each  make bench   speed, beside PyTorch
#   make bench-dist, make bench-checkpoint             the same of links and jobs, and of the store
#     (CASES=all: steps of 1 to 100 workers, up to 1 GB and to tables of 4 GB: an hour)
#   make bench-techniques                              ways to exchange gradients, over slow wires
#   make check-techniques                              what these take long to show, or as root
#   make check-gpu, check-gpu-sanitizer, bench-gpu     on a machine with a card: docs/gpu.md
#   make soak    hours of damage and kills for the checkpoint store; many random graphs
#   make growth  time and memory of each tool by the size of many kinds of graphs: an hour
#   make install PREFIX=/usr/local DESTDIR=            make uninstall, with the same two
#     (install-files: the same of what is built already) make clean
#   make deb     Debian packages in build/deb: programs, library, -dev and -doc
# SANITIZE=address,undefined or SANITIZE=thread builds into its own folder. CC=clang works as well.
# CUDA=0: without the module for GPUs, which is built where nvcc is found; CUDA_ARCH="sm_80 sm_90".
# FILTERS=1: the tools that rewrite graphs and data, alone; no kernels, links or checkpoints, and so
# neither OpenBLAS, oneDNN, libevent, LMDB, isa-l nor OpenSSL.
# For another machine: CROSS_COMPILE=aarch64-linux-gnu- SYSROOT=a root with its libraries, and, for
# the programs that are run while building, EMULATOR (docs/portability.md).
FILTERS ?=
CROSS_COMPILE ?=
SYSROOT ?=
EMULATOR ?=
CC := $(if $(filter default,$(origin CC)),$(CROSS_COMPILE)gcc,$(CC))
AR := $(CROSS_COMPILE)ar
NM := $(CROSS_COMPILE)nm
HOST_CC ?= $(if $(CROSS_COMPILE),gcc,$(CC))
PREFIX ?= /usr/local
SANITIZE ?=
comma := ,
BUILD ?= build$(if $(SANITIZE),/$(subst $(comma),-,$(SANITIZE)))
VERSION := $(shell sed -n 's/.*define TOOL_VERSION "\(.*\)"/\1/p' libcommon/base/version.h)
MACHINE := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine)))
FUZZ_SECONDS ?= 300
IS_CLANG := $(findstring clang,$(CC))

WARN := -Wall -Wextra -Werror -Wmissing-prototypes -Wstrict-prototypes -Wvla -Wpointer-arith -Wshadow
# What a sanitizer adds to each access is most of what is compiled then: -O1 takes 0.6 of the time of
# -O2. Its reports name functions and lines, for which -g1 is enough. What fits into a buffer, and
# what is set before it is used, GCC knows less well with them: that is for the plain build to tell.
SANITIZE_CFLAGS := -O1 -g1 $(if $(IS_CLANG),,-Wno-format-truncation -Wno-maybe-uninitialized)
CFLAGS ?= $(if $(SANITIZE),$(SANITIZE_CFLAGS),-O2 -g)
# No strict aliasing: tensor memory is viewed under many types. No contraction: a value must not
# depend on whether the compiler found a fused multiply-add.
BASE_CFLAGS := -std=c11 -D_GNU_SOURCE -fno-strict-aliasing -ffp-contract=off -fPIC -pthread \
	-fvisibility=default $(WARN) -Ilibcommon -I. -include $(BUILD)/gen/exports.h
# Nobody puts functions in the place of a library's own: calls within it are direct, those of others
# without a stub. A step of a shard is hundreds of small calls (measured: 4 to 7 % of its time).
BASE_CFLAGS += -fno-semantic-interposition -fno-plt
BASE_LDFLAGS := -pthread -Wl$(comma)-Bsymbolic-functions $(LDFLAGS)
ifneq ($(SYSROOT),)
BASE_CFLAGS += --sysroot=$(SYSROOT)
BASE_LDFLAGS += --sysroot=$(SYSROOT)
endif
ifneq ($(SANITIZE),)
BASE_CFLAGS += -fsanitize=$(SANITIZE) -fno-omit-frame-pointer -fno-sanitize-recover=undefined
BASE_LDFLAGS += -fsanitize=$(SANITIZE)
endif
HOST_LUA := $(shell pkg-config --cflags lua5.4 2>/dev/null || echo -I/usr/include/lua5.4)
LUA_CFLAGS := $(if $(SYSROOT),-I$(SYSROOT)/usr/include/lua5.4,$(HOST_LUA))
LIB_LIBS := -llua5.4 -lmsgpackc -lz -lm -ldl
JOBS_LIBS := -lmsgpackc -levent_core -llmdb -lcrypto -ljansson -lisal -lz -lm
# GCC's runtime with clang as well: OpenBLAS and oneDNN bring it (ops/math/team_cpu.c).
OPENMP := $(if $(IS_CLANG),-fopenmp=libgomp,-fopenmp)

# The library of graphs, ops and executors, and the one of jobs: links, shards, checkpoints. Filters
# need the first only: a library of the second takes longer to load than they take to run. Kernels
# go to a module per device, loaded when it is asked for. All of these are our own: they change from
# one version to the next, and lie in a folder of their own. What others link is $(PUBLIC_LIB) below.
PUBLIC_SRC := libcommon/api/door.c
LIB_SRC := $(filter-out $(PUBLIC_SRC) libcommon/data/% libcommon/supervise/% %_cpu.c %_cuda.c %_any.c %_gen.c,$(wildcard libcommon/*/*.c libcommon/*/*/*.c ops/*/*.c ops/*.c))
JOBS_SRC := $(filter-out %_openssl.c,$(wildcard libcommon/supervise/*.c transport/*/*.c ps/*.c checkpoint/*/*.c))
PRELUDE := $(sort $(wildcard ops/prelude/*.lua))
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/obj/%.o) $(BUILD)/obj/gen/prelude.o
GRAPH_LIB := $(BUILD)/lib/tf-tools/libtf-graph.so
JOBS_LIB := $(BUILD)/lib/tf-tools/libtf-jobs.so
LIB := $(GRAPH_LIB) $(if $(FILTERS),,$(JOBS_LIB))
# Unit tests call what nobody else does: the same objects, linked with all their names, and modules
# beside them.
TEST_LIB := $(LIB:$(BUILD)/lib/tf-tools/%=$(BUILD)/lib/tests/%)
# What the two export, libcommon/api/exports.list. Within a program of others, whose functions may
# have the names of ours, the dynamic linker would give a module theirs: so what modules call has
# names that no program has, in all our objects (#pragma redefine_extname).
EXPORTS := libcommon/api/exports.list
EXPORTS_H := $(BUILD)/gen/exports.h
EXPORTS_MAP := $(BUILD)/gen/exports.map
# What others link: the functions of the public headers and nothing else. Its number is that of the
# interface. It loads the first of the libraries above when it is first called.
PUBLIC_HEADERS := $(addprefix libcommon/api/,tf_types.h tf_tools.h tf_op.h tf_op_calls.h)
PUBLIC_ABI := $(shell sed -n 's/.*define TF_TOOLS_ABI //p' libcommon/api/tf_tools.h)
PUBLIC_LIB := $(BUILD)/lib/libtf-tools.so.$(PUBLIC_ABI)
# Each program is linked with those of the two that it uses.
LINK_LIBS = -L$(BUILD)/lib/$(or $(LINK_WITH),tf-tools) -Wl$(comma)--as-needed $(if $(FILTERS),,-ltf-jobs) -ltf-graph
# Kernels of any device (_any.c) look at host memory alone, or move tensors: each module has them.
ANY_SRC := $(wildcard ops/*/*_any.c)
# What kernels compute sizes and read arguments with has no state: each module has its own.
SHAPES := $(BUILD)/obj/shapes.a
SHAPES_SRC := $(wildcard ops/*/*_shapes.c ops/*/*_shared.c) $(addprefix ops/,array/results.c \
	matrix/band.c matrix/linear_sizes.c matrix/product.c nn/window.c train/apply_arguments.c)
CPU_SRC := $(wildcard ops/*/*_cpu.c) $(ANY_SRC)
# One build of the CPU kernels per instruction set; the best one that the machine has is loaded.
CPU_ISAS ?= $(if $(SANITIZE),base,$(if $(filter x86_64,$(MACHINE)),base v3 v4,base))
ISA_CFLAGS_base :=
ISA_CFLAGS_v3 := -march=x86-64-v3
ISA_CFLAGS_v4 := -march=x86-64-v4 -mprefer-vector-width=512
CPU_MODULES := $(if $(FILTERS),,$(CPU_ISAS:%=$(BUILD)/lib/tf-tools/cpu-%.so))
BLAS_DIR := $(patsubst $(SYSROOT)%,%,$(firstword \
	$(wildcard $(addprefix $(SYSROOT)/usr/lib/,$(MACHINE)-linux-gnu/openblas-openmp */openblas-openmp))))
CPU_LIBS := $(if $(BLAS_DIR),-L$(SYSROOT)$(BLAS_DIR) -Wl$(comma)-rpath$(comma)$(BLAS_DIR)) -lopenblas -ldnnl -lm
CPU_CFLAGS := $(if $(BLAS_DIR),-I$(SYSROOT)$(BLAS_DIR:/usr/lib/%=/usr/include/%))
# TLS, for those who have a key: OpenSSL takes milliseconds to load.
TLS_MODULE := $(if $(FILTERS),,$(BUILD)/lib/tf-tools/tls.so)
# The CUDA device, where there is a compiler for its kernels: CUDA=0 leaves it out. It is built for
# the architectures of CUDA_ARCH, and as PTX of the last, from which the driver makes code for others
# when it loads them: one is quick to build, releases have sm_80, sm_90 and sm_100.
CUDA ?= $(if $(FILTERS)$(SANITIZE)$(CROSS_COMPILE),0,1)
CUDA_ARCH ?= sm_80
NVCC := $(if $(filter-out 0,$(CUDA)),$(shell command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null))
CUDA_HOME := $(patsubst %/bin/nvcc,%,$(NVCC))
CUDA_SRC := $(wildcard ops/*_cuda.c ops/*/*.cu ops/*/*_cuda.c) $(ANY_SRC)
CUDA_MODULE := $(if $(NVCC),$(BUILD)/lib/tf-tools/cuda.so)
CUDA_CODE = $(foreach arch,$(CUDA_ARCH:sm_%=%),-gencode arch=compute_$(arch),code=sm_$(arch)) \
	$(foreach arch,$(lastword $(CUDA_ARCH:sm_%=%)),-gencode arch=compute_$(arch),code=compute_$(arch))
# The runtime is in the module; it finds the driver when it is asked for. Of C++'s, the stubs that
# launch kernels want the locks of first calls alone.
CUDA_LIBS = $(firstword $(wildcard $(CUDA_HOME)/lib64/libcudart_static.a $(CUDA_HOME)/lib/libcudart_static.a)) -l:libsupc++.a \
	-Wl$(comma)--exclude-libs$(comma)ALL -lm -ldl -lrt -lpthread

# tf-plot, tf-run and tf-top are shell: bin/NAME-options.c parses their command lines, what they
# read is in scripts/NAME, and what they share in scripts/tool.
SCRIPT_TOOLS := $(if $(FILTERS),,plot run top)
SCRIPT_PARTS := $(foreach tool,$(if $(FILTERS),,tool) $(SCRIPT_TOOLS),$(patsubst scripts/%,$(BUILD)/lib/tf-tools/%,$(wildcard scripts/$(tool)/*)))
SCRIPT_PROGRAMS := $(if $(FILTERS),,$(SCRIPT_TOOLS:%=%/options) run/parts top/serve)
BINS := $(if $(FILTERS),$(addprefix $(BUILD)/bin/tf-,graph grad opt place part replicate show data),\
	$(patsubst bin/%.c,$(BUILD)/bin/%,$(wildcard bin/tf-*.c)) $(SCRIPT_TOOLS:%=$(BUILD)/bin/tf-%))
# What programs share, or have put into a file of its own: each takes what it calls.
BIN_PARTS := $(BUILD)/obj/bin/parts.a
# Programs of the build only: the manual pages come from the programs themselves.
# The one that names them all, the page of what they have in common, and those of the formats.
OVERVIEW := $(BUILD)/bin/tf
FORMAT_MANS := $(patsubst %,$(BUILD)/man/tf-%.5,stream text cluster checkpoint data)
OVERVIEW_MAN := $(if $(SANITIZE)$(CROSS_COMPILE),,$(BUILD)/man/tf-tools.7)
MANS := $(if $(SANITIZE)$(if $(EMULATOR),,$(CROSS_COMPILE)),,$(BINS:$(BUILD)/bin/%=$(BUILD)/man/%.1))
OPS_TEST_OBJ := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tests/ops/*.c))
UNIT_TESTS := $(patsubst tests/unit/%.c,$(BUILD)/tests/unit/%,$(wildcard tests/unit/*/*.c)) $(BUILD)/tests/unit/ops/cases
# The CUDA kernels run on the host, too, by the emulator of tests/lib/cuda: where there is a C++
# compiler that goes with $(CC).
CXX := $(if $(filter default,$(origin CXX)),$(CROSS_COMPILE)$(if $(IS_CLANG),clang++,g++),$(CXX))
HOST_CUDA := $(if $(filter %gcc %clang cc,$(notdir $(CC))),$(if $(filter-out musl-gcc,$(notdir $(CC))),$(shell command -v $(CXX))))
EMULATED_CUDA := $(patsubst %,$(BUILD)/obj/cuda-host/%.o,$(wildcard ops/*/*.cu tests/lib/cuda/*.cu tests/lib/cuda/*.cc))
CUDA_TESTS := $(filter $(BUILD)/tests/unit/ops/cuda_%,$(UNIT_TESTS))
# The unit tests that start threads, or run the parts of a graph in threads, for ThreadSanitizer.
THREAD_TESTS ?= $(patsubst tests/unit/%.c,$(BUILD)/tests/unit/%,$(shell grep -lE 'pthread_create|digest_pool|driver_next_feeds|lib/(cut|nest_plan|links|reducers|reductions|shards|two_plans).h' tests/unit/*/*.c 2>/dev/null))
# Kernels under ThreadSanitizer: by a team of threads that it sees, and the proof that it does.
TEAM := $(if $(filter thread,$(SANITIZE)),$(BUILD)/obj/tests/lib/team.o)
TEAM_TESTS := $(if $(TEAM),$(BUILD)/tests/unit/ops/cases $(BUILD)/tests/lib/race)
BENCHES := $(patsubst tests/bench/%.c,$(BUILD)/tests/bench/%,$(wildcard tests/bench/*.c))
FUZZERS := $(patsubst tests/fuzz/%.c,$(BUILD)/tests/fuzz/%,$(wildcard tests/fuzz/*.c))

$(UNIT_TESTS) $(BENCHES) $(FUZZERS) $(BUILD)/tests/lib/proxy: private LINK_WITH := tests
.DELETE_ON_ERROR:
# Expected values of op tests, written by NumPy or PyTorch: PYTHON must have what the script imports.
PYTHON ?= python3
# Narrow types are held against the cases of others, which are written before them.
GOLDEN ?= $(filter-out golden narrow_types,$(patsubst tests/ops/cases/%.py,%,$(wildcard tests/ops/cases/*.py))) narrow_types
# What each benchmark target runs: the tests/bench/NAME.sh, or programs of the same name.
BENCH_bench := startup nullops loops layers train csv
BENCH_bench-dist := link allreduce dist variables worker ddp
BENCH_bench-checkpoint := checkpoint
BENCH_bench-techniques := techniques
.PHONY: flickers hooks bench-dist bench-checkpoint bench-techniques bench-gpu check-techniques check-gpu check-gpu-sanitizer soak growth digests report-structure mutants exports docs golden FORCE all lib unit thread-tests fuzzers demo check check-device check-sanitizers check-portable chaos signals check-headers lint fuzz bench install install-files install-headers uninstall deb deb-files help clean
all: $(BINS) $(OVERVIEW) $(MANS) $(OVERVIEW_MAN) $(FORMAT_MANS) $(PUBLIC_LIB) $(CPU_MODULES) $(TLS_MODULE) $(CUDA_MODULE)
lib: $(LIB) $(PUBLIC_LIB) $(CPU_MODULES) $(TLS_MODULE)
TEST_DEVICE := $(BUILD)/tests/lib/test.so
FAKE_CUDA := $(BUILD)/tests/lib/cuda.so
OWN_OPS := $(BUILD)/tests/lib/own_ops.so $(patsubst %,$(BUILD)/tests/lib/refused-%.so,abi later none \
	nothing taken twice name malformed reference flag kernel empty)
PROXY := $(BUILD)/tests/lib/proxy
# What is beside the library that tests are linked with.
TEST_MODULES := $(patsubst $(BUILD)/lib/tf-tools/%,$(BUILD)/lib/tests/%,$(CPU_MODULES) $(TLS_MODULE) $(CUDA_MODULE))
$(UNIT_TESTS): | $(if $(FILTERS),,$(TEST_MODULES))
unit: $(UNIT_TESTS) $(TEST_MODULES) $(TEST_DEVICE) $(FAKE_CUDA) $(PROXY) $(OWN_OPS) $(if $(SANITIZE),,$(BUILD)/tests/lib/faults.so)
thread-tests: $(THREAD_TESTS) $(TEAM_TESTS) $(TEST_MODULES) $(TEST_DEVICE) $(FAKE_CUDA) $(PROXY)
fuzzers: $(FUZZERS) $(TEST_MODULES)

# Objects depend on the compiler and its flags: another CC or CFLAGS compiles anew, and not make alone.
FLAGS := $(BUILD)/gen/flags
CUDA_FLAGS := $(BUILD)/gen/cuda_flags
$(FLAGS): FORCE
	@mkdir -p $(@D)
	@echo '$(CC) $(BASE_CFLAGS) $(CFLAGS) $(LUA_CFLAGS) $(CPU_CFLAGS) $(OPENMP)' | cmp -s - $@ || \
		echo '$(CC) $(BASE_CFLAGS) $(CFLAGS) $(LUA_CFLAGS) $(CPU_CFLAGS) $(OPENMP)' >$@
$(CUDA_FLAGS): FORCE
	@mkdir -p $(@D)
	@echo '$(NVCC) $(CUDA_CODE)' | cmp -s - $@ || echo '$(NVCC) $(CUDA_CODE)' >$@
FORCE:

# Whoever types `make` first is told what to install, by one line.
HEADERS := msgpack.h lua.h zlib.h lzma.h zstd.h xxhash.h jansson.h $(if $(FILTERS),,event2/event.h lmdb.h openssl/evp.h isa-l.h cblas.h dnnl.h)
HEADERS_FOUND := $(BUILD)/gen/headers_found
$(HEADERS_FOUND): | $(EXPORTS_H)
	@mkdir -p $(@D)
	@for header in $(HEADERS); do echo "#include <$$header>" | \
		$(CC) $(BASE_CFLAGS) $(CFLAGS) $(LUA_CFLAGS) $(CPU_CFLAGS) -fsyntax-only -xc - 2>/dev/null || { \
		echo "make: <$$header> is missing: on Debian, scripts/setup build installs it" >&2; exit 1; }; done
	@touch $@
$(BUILD)/obj/tests/lib/%.o: BASE_CFLAGS += -Itests
$(BUILD)/obj/%.o: %.c $(FLAGS) | $(HEADERS_FOUND)
	@mkdir -p $(@D)
	$(CC) $(BASE_CFLAGS) $(CFLAGS) $(LUA_CFLAGS) -MMD -MP -c $< -o $@
# The prelude as C, compiled to bytecode: prelude_modules[] of ops/script/internal.h.
$(BUILD)/gen/prelude_gen: ops/script/prelude_gen.c | $(HEADERS_FOUND)
	@mkdir -p $(@D)
	$(HOST_CC) -std=c11 -D_GNU_SOURCE -O2 $(WARN) -Ilibcommon -I. $(HOST_LUA) $< -o $@ -llua5.4
$(BUILD)/gen/prelude.c: $(PRELUDE) $(BUILD)/gen/prelude_gen
	$(BUILD)/gen/prelude_gen $(PRELUDE) >$@
$(BUILD)/obj/gen/prelude.o: $(BUILD)/gen/prelude.c
	@mkdir -p $(@D)
	$(CC) $(BASE_CFLAGS) $(CFLAGS) $(LUA_CFLAGS) -MMD -MP -c $< -o $@
$(EXPORTS_H): $(EXPORTS)
	@mkdir -p $(@D)
	awk '$$2 == "modules" { print "#pragma redefine_extname", $$1, "tf_core_" $$1 }' $< >$@
$(EXPORTS_MAP): $(EXPORTS)
	@mkdir -p $(@D)
	awk 'BEGIN { print "{ global: tf_core;" } /^[a-z]/ { print ($$2 == "modules" ? "tf_core_" : "") $$1 ";" } \
		END { print "local: *; };" }' $< >$@
shared = $(CC) -shared $(BASE_LDFLAGS) $(if $(SANITIZE),,-Wl$(comma)-z$(comma)defs) $(filter %.o,$^) -o $@
# Static patterns, as make takes what a pattern alone names for intermediate, and removes it.
$(GRAPH_LIB) $(BUILD)/lib/tests/libtf-graph.so: $(BUILD)/lib/%/libtf-graph.so: $(LIB_OBJ) $(EXPORTS_MAP)
	@mkdir -p $(@D)
	$(shared) -Wl$(comma)-soname$(comma)$(@F) -Wl$(comma)-Bsymbolic $(EXPORTED) $(LIB_LIBS)
$(JOBS_LIB) $(BUILD)/lib/tests/libtf-jobs.so: $(BUILD)/lib/%/libtf-jobs.so: $(JOBS_SRC:%.c=$(BUILD)/obj/%.o) $(BUILD)/lib/%/libtf-graph.so $(EXPORTS_MAP)
	@mkdir -p $(@D)
	$(shared) -Wl$(comma)-soname$(comma)$(@F) $(EXPORTED) -L$(@D) -ltf-graph $(JOBS_LIBS) '-Wl,-rpath,$$ORIGIN'
$(LIB): private EXPORTED := -Wl$(comma)--version-script=$(EXPORTS_MAP)
$(SHAPES): $(SHAPES_SRC:%.c=$(BUILD)/obj/%.o)
	rm -f $@
	$(AR) rcs $@ $^
# Modules are loaded from where the library lies.
$(TEST_MODULES): $(BUILD)/lib/tests/%.so: $(BUILD)/lib/tf-tools/%.so
	@mkdir -p $(@D)
	ln -sf ../tf-tools/$(@F) $@
$(PUBLIC_LIB): $(PUBLIC_SRC:%.c=$(BUILD)/obj/%.o) libcommon/api/tf_tools.map | $(GRAPH_LIB)
	@mkdir -p $(@D)
	$(shared) -Wl$(comma)-soname$(comma)$(@F) -Wl$(comma)--version-script=$(filter %.map,$^) -ldl
	ln -sf $(@F) $(@:.$(PUBLIC_ABI)=)
# $(call program,extra libraries): compiles and links a single source against the library
program = @mkdir -p $(@D) $(BUILD)/obj/$(<D); \
	$(if $(findstring s,$(firstword -$(MAKEFLAGS))),,echo '$(CC) $< -o $@';) \
	$(CC) $(BASE_CFLAGS) $(CFLAGS) -Itests -MMD -MP -MF $(BUILD)/obj/$(<:.c=.d) $(BASE_LDFLAGS) $< $(filter %.a,$^) -o $@ \
	$(LINK_LIBS) -lmsgpackc -ljansson $(1)
# What one program alone calls is linked with it, and not with the libraries.
PARTS_SRC := $(filter-out bin/tf-% bin/run-% bin/top-%,$(wildcard bin/*.c)) $(wildcard libcommon/data/*.c)
$(BUILD)/gen/topics.c: docs/language.md scripts/topics
	@mkdir -p $(@D)
	scripts/topics <$< >$@
$(BUILD)/obj/gen/topics.o: $(BUILD)/gen/topics.c
	@mkdir -p $(@D)
	$(CC) $(BASE_CFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@
$(BIN_PARTS): $(PARTS_SRC:%.c=$(BUILD)/obj/%.o) $(BUILD)/obj/gen/topics.o Makefile
	rm -f $@
	$(AR) rcs $@ $(filter %.o,$^)
$(BUILD)/bin/%: $(BUILD)/obj/bin/%.o $(BIN_PARTS) $(LIB)
	@mkdir -p $(@D)
	$(CC) $(BASE_LDFLAGS) $(filter %.o %.a,$^) -o $@ $(LINK_LIBS) -lmsgpackc -ljansson -lz -lm '-Wl,-rpath,$$ORIGIN/../lib/tf-tools'
$(SCRIPT_TOOLS:%=$(BUILD)/bin/tf-%): $(BUILD)/bin/%: scripts/% $(SCRIPT_PARTS) \
		$(SCRIPT_PROGRAMS:%=$(BUILD)/lib/tf-tools/%)
	@mkdir -p $(@D)
	install -m 755 $< $@
$(SCRIPT_PARTS): $(BUILD)/lib/tf-tools/%: scripts/%
	@mkdir -p $(@D)
	install -m 644 $< $@
define script_program
$(BUILD)/lib/tf-tools/$(1): $(BUILD)/obj/bin/$(subst /,-,$(1)).o $(BIN_PARTS) $(LIB)
	@mkdir -p $$(@D)
	$(CC) $(BASE_LDFLAGS) $$(filter %.o %.a,$$^) -o $$@ $(LINK_LIBS) -lmsgpackc -ljansson '-Wl,-rpath,$$$$ORIGIN/..'
endef
$(foreach program,$(SCRIPT_PROGRAMS),$(eval $(call script_program,$(program))))
$(BUILD)/tests/unit/ops/cases: $(OPS_TEST_OBJ) $(TEAM) $(TEST_LIB)
	@mkdir -p $(@D)
	$(CC) $(BASE_LDFLAGS) $(if $(TEAM),-rdynamic) $(OPS_TEST_OBJ) $(TEAM) -o $@ $(LINK_LIBS) -lm '-Wl,-rpath,$$ORIGIN/../../../lib/tests'
# What it exports is found before what the libraries of kernels bring.
$(BUILD)/tests/unit/ops/team $(BUILD)/tests/unit/ops/products: private BASE_LDFLAGS += -rdynamic
# Kernels on the host have the device's arithmetic: no sum is fused with a product. What only they
# and their emulator call is hidden, and so a direct call.
CUDA_HOST_FLAGS = -std=c++17 -O1 $(if $(SANITIZE),-g1,-g) -fPIC -fvisibility=hidden -ffp-contract=off -fno-strict-aliasing -fno-exceptions -Wall -Wextra -Werror \
	-Itests/lib/cuda -Itests -Ilibcommon -I. $(filter -fsanitize% -fno-sanitize% -fno-omit%,$(BASE_CFLAGS)) -MMD -MP
$(BUILD)/obj/cuda-host/%.cu.o: %.cu $(FLAGS)
	@mkdir -p $(@D)
	$(CXX) $(CUDA_HOST_FLAGS) -x c++ -c $< -o $@
$(BUILD)/obj/cuda-host/%.cc.o: %.cc $(FLAGS)
	@mkdir -p $(@D)
	$(CXX) $(CUDA_HOST_FLAGS) -c $< -o $@
ifneq ($(HOST_CUDA),)
$(BUILD)/obj/tests/unit/ops/cuda_%.o: BASE_CFLAGS += -Itests
$(BUILD)/tests/lib/emulated-cuda.a: $(EMULATED_CUDA)
	@mkdir -p $(@D)
	rm -f $@
	$(AR) rcs $@ $^
$(CUDA_TESTS): $(BUILD)/tests/unit/ops/%: $(BUILD)/obj/tests/unit/ops/%.o $(BUILD)/tests/lib/emulated-cuda.a $(TEST_LIB)
	@mkdir -p $(@D)
	$(CXX) $(BASE_LDFLAGS) $(filter %.o %.a,$^) -o $@ $(LINK_LIBS) -lcmocka -lm '-Wl,-rpath,$$ORIGIN/../../../lib/tests'
else
$(CUDA_TESTS): $(BUILD)/tests/unit/ops/%: tests/unit/ops/%.c
	@mkdir -p $(@D)
	printf '%s\n' '#!/bin/sh' 'echo 1..1' 'echo "ok 1 - $* # SKIP no C++ compiler that goes with $(CC)"' >$@
	chmod +x $@
endif
$(filter $(BUILD)/tests/unit/data/%,$(UNIT_TESTS)): $(BIN_PARTS)
$(BUILD)/tests/unit/%: tests/unit/%.c $(FLAGS) $(TEST_LIB)
	$(call program,-lcmocka -lz $(if $(FILTERS),,-lcrypto) -lm '-Wl$(comma)-rpath$(comma)$$ORIGIN/../../../lib/tests')
$(BUILD)/tests/bench/%: tests/bench/%.c $(FLAGS) $(TEST_LIB)
	$(call program,$(BENCH_LIBS) '-Wl$(comma)-rpath$(comma)$$ORIGIN/../../lib/tests')
$(BUILD)/tests/bench/layers: private BENCH_LIBS := $(CPU_CFLAGS) $(CPU_LIBS)
$(PROXY): tests/lib/proxy.c $(TEST_LIB)
	$(call program,'-Wl$(comma)-rpath$(comma)$$ORIGIN/../../lib/tests')
$(BUILD)/tests/lib/race: $(BUILD)/obj/tests/lib/race.o \
	$(addprefix $(BUILD)/obj/cpu-base/ops/math/,parallel_cpu.o team_cpu.o) $(TEAM)
	@mkdir -p $(@D)
	$(CC) $(BASE_LDFLAGS) $^ -o $@
$(BUILD)/tests/lib/faults.so $(BUILD)/tests/lib/pauses.so: $(BUILD)/tests/lib/%.so: tests/lib/%.c
	@mkdir -p $(@D)
	$(CC) $(BASE_CFLAGS) $(CFLAGS) -shared $< -o $@ -ldl
# Objects with ops, as users compile them: they need no library, and see nothing but public headers.
own_ops = @mkdir -p $(@D); $(CC) -std=c11 -fPIC -shared $(WARN) $(CFLAGS) $(filter -fsanitize% --sysroot%,$(BASE_CFLAGS)) \
	-Ilibcommon/api $(1) $< -o $@
$(BUILD)/tests/lib/own_ops.so: tests/lib/own_ops.c $(PUBLIC_HEADERS)
	$(call own_ops)
$(BUILD)/tests/lib/refused-%.so: tests/lib/refused_ops.c $(PUBLIC_HEADERS)
	$(call own_ops,-DREFUSED_$*)
# A module for a type of device, found by TF_DEVICE_PATH.
# And the CUDA device's own code, over a driver that is none, on the same scheduler.
TEST_ENGINE := $(filter-out tests/lib/device_test.c,$(wildcard tests/lib/device_test_*.c))
# The kernels are there where they can be emulated; without them it has the CPU's.
CUDA_DEVICE := $(addprefix ops/device/,$(addsuffix _cuda.c,blas check gemm solver dnn nccl choices measure library device queue memory peer graph type))
CUDA_KERNELS := $(filter-out $(CUDA_DEVICE) ops/module_cuda.c %_real_cuda.c,$(wildcard ops/*_cuda.c ops/*/*_cuda.c)) $(ANY_SRC)
CAN_EMULATE := $(if $(filter thread,$(SANITIZE)),,$(HOST_CUDA))
FAKE_KERNELS := $(if $(CAN_EMULATE),$(CUDA_KERNELS:%.c=$(BUILD)/obj/%.o) $(BUILD)/tests/lib/emulated-cuda.a)
$(TEST_DEVICE): $(patsubst %.c,$(BUILD)/obj/%.o,tests/lib/device_test.c $(TEST_ENGINE)) $(SHAPES) $(LIB)
$(FAKE_CUDA): $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tests/lib/fake_cuda*.c) $(CUDA_DEVICE) $(TEST_ENGINE)) $(FAKE_KERNELS) $(SHAPES) $(LIB)
$(FAKE_CUDA): private BASE_LDFLAGS += $(if $(CAN_EMULATE),-Wl$(comma)--exclude-libs$(comma)ALL)
$(TEST_DEVICE) $(FAKE_CUDA):
	@mkdir -p $(@D)
	$(if $(filter %emulated-cuda.a,$^),$(CXX),$(CC)) -shared $(BASE_LDFLAGS) $(filter %.o %.a,$^) -o $@ $(LINK_LIBS) '-Wl,-rpath,$$ORIGIN/../../lib/tf-tools'
$(BUILD)/tests/fuzz/%: tests/fuzz/%.c $(FLAGS) $(BIN_PARTS) $(TEST_LIB)
	$(call program,-lm -fsanitize=fuzzer '-Wl$(comma)-rpath$(comma)$$ORIGIN/../../lib/tests')
define CPU_RULES
$(BUILD)/obj/cpu-$(1)/%.o: %.c $(FLAGS) | $(HEADERS_FOUND)
	@mkdir -p $$(@D)
	$$(CC) $$(BASE_CFLAGS) $$(CFLAGS) $$(if $$(SANITIZE),,-O3) -fno-math-errno -fno-trapping-math $$(OPENMP) $(if $(filter thread,$(SANITIZE)),-DPARALLEL_TEAM) $$(CPU_CFLAGS) $$(ISA_CFLAGS_$(1)) -MMD -MP -c $$< -o $$@
$(BUILD)/lib/tf-tools/cpu-$(1).so: $(CPU_SRC:%.c=$(BUILD)/obj/cpu-$(1)/%.o) $(SHAPES) $(LIB)
	@mkdir -p $$(@D)
	$$(CC) -shared $$(OPENMP) $$(BASE_LDFLAGS) $$(filter %.o %.a,$$^) -o $$@ $$(LINK_LIBS) $$(CPU_LIBS) '-Wl,-rpath,$$$$ORIGIN'
endef
$(foreach isa,$(CPU_ISAS),$(eval $(call CPU_RULES,$(isa))))
$(BUILD)/lib/tf-tools/tls.so: $(BUILD)/obj/transport/channel/tls_openssl.o $(LIB)
	@mkdir -p $(@D)
	$(CC) -shared $(BASE_LDFLAGS) $< -o $@ $(LINK_LIBS) -lssl -lcrypto '-Wl,-rpath,$$ORIGIN'
$(BUILD)/obj/cuda/%.cu.o: %.cu $(CUDA_FLAGS)
	@mkdir -p $(@D)
	$(NVCC) -O3 -std=c++17 -fmad=false -Werror all-warnings $(CUDA_CODE) -Ilibcommon -I. \
		-Xcompiler -fPIC,-Wall,-Wextra,-fno-exceptions -MMD -MP -c $< -o $@
$(BUILD)/obj/cuda/%.c.o: %.c $(FLAGS) | $(HEADERS_FOUND)
	@mkdir -p $(@D)
	$(CC) $(BASE_CFLAGS) $(CFLAGS) -isystem $(CUDA_HOME)/include -MMD -MP -c $< -o $@
$(BUILD)/lib/tf-tools/cuda.so: $(CUDA_SRC:%=$(BUILD)/obj/cuda/%.o) $(SHAPES) $(LIB)
	@mkdir -p $(@D)
	$(CC) -shared $(BASE_LDFLAGS) -Wl$(comma)-z$(comma)defs $(filter %.o %.a,$^) -o $@ $(LINK_LIBS) \
		$(CUDA_LIBS) -lm '-Wl,-rpath,$$ORIGIN'

$(BUILD)/man/%.1: $(BUILD)/bin/%
	@mkdir -p $(@D)
	$(EMULATOR) $< --man >$@
$(SCRIPT_TOOLS:%=$(BUILD)/man/tf-%.1): $(BUILD)/man/tf-%.1: $(BUILD)/lib/tf-tools/%/options
	@mkdir -p $(@D)
	$(EMULATOR) $< --man >$@
$(OVERVIEW): scripts/tf
	@mkdir -p $(@D)
	install -m 755 $< $@
$(BUILD)/man/tf-tools.7: $(OVERVIEW) $(BINS)
	@mkdir -p $(@D)
	$< --man >$@
$(FORMAT_MANS): $(BUILD)/man/tf-%.5: docs/%.md scripts/man-page
	@mkdir -p $(@D)
	scripts/man-page tf-$* $(VERSION) <$< >$@
# What a bare Debian lacks is installed first; then make starts anew, to find it.
JOBS = $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(shell nproc))
# Says how far it is: a build takes minutes.
demo:
	@scripts/setup build
	@{ $(MAKE) $(JOBS) all; echo "ended $$?"; } | awk -v all="$$($(MAKE) -n all | grep -c ' -o ')" \
		'/ -o / && ++n % 100 == 0 { print "make: " n " of " all " files built"; fflush() } \
		/^ended / { exit $$2 }'
	@scripts/demo
check:
	@scripts/setup build check
	@$(MAKE) -s $(JOBS) all unit
	@scripts/check
check-device:
	@scripts/setup build check
	@$(MAKE) -s $(JOBS) all unit
	@scripts/check device
check-sanitizers:
	@scripts/setup build check
	@$(MAKE) -s $(JOBS) SANITIZE=thread thread-tests
	@$(MAKE) -s $(JOBS) SANITIZE=address,undefined unit
	@$(MAKE) -s $(JOBS) CC=clang SANITIZE=fuzzer-no-link,address,undefined fuzzers
	@scripts/check sanitizers
# What waits for a card, and ends with 69 where there is none.
check-gpu check-gpu-sanitizer:
	@scripts/setup build check
	@$(MAKE) -s $(JOBS) all unit
	@scripts/gpu-check $(if $(findstring sanitizer,$@),$(addprefix sanitizer:,memcheck racecheck synccheck initcheck))
check-portable:
	@scripts/setup build check portable
	@scripts/portable
# Jobs of several processes, of which some want network namespaces: one at a time.
check-techniques:
	@scripts/setup build check
	@$(MAKE) -s $(JOBS) all
	@tests/lib/run -j 1 -t 1200 -o $(BUILD)/check/techniques tests/techniques/*.bats
signals:
	@scripts/setup build check
	@$(MAKE) -s $(JOBS) all
	SIGNALS=all FROZEN=1 bats tests/e2e/signals.bats tests/tools/tf-supervise-late.bats
chaos:
	@scripts/setup build check
	@$(MAKE) -s $(JOBS) all $(BUILD)/tests/unit/ps/backup
	@scripts/chaos
flickers:
	@scripts/setup build check
	@$(MAKE) -s $(JOBS) all unit $(BUILD)/tests/lib/pauses.so
	@scripts/check flickers
hooks:
	@printf '%s\n' '#!/bin/sh' 'exec scripts/lint -c' >"$$(git rev-parse --git-path hooks/pre-commit)"
	@chmod +x "$$(git rev-parse --git-path hooks/pre-commit)"
lint check-headers:
	@scripts/setup build check
	@scripts/$(@:check-headers=lint headers)
fuzz:
	@scripts/setup build check
	@$(MAKE) -s $(JOBS) CC=clang SANITIZE=fuzzer-no-link,address,undefined fuzzers
	@scripts/fuzz $(FUZZ_SECONDS)
# Hours: 10,000 flipped bits, 10,000 kills of a writer, 10,000 system calls of one and 6,000 of two
# shards killed and some thousand made to fail, every bit of the meta pages of three stores, 500 ends of
# resumed runs, 200 of resumed jobs, 1,000 saves under a policy, 1,000 nests and 20,000 graphs on the
# TEST device, 12,000 nests whose steps are cancelled, 20,000 graphs of branches and 5,000 of loops.
soak:
	@scripts/setup build check
	@$(MAKE) -s $(JOBS) all unit
	STORE_DAMAGES=10000 $(BUILD)/tests/unit/checkpoint/store_damage
	STORE_KILLS=10000 $(BUILD)/tests/unit/checkpoint/store_kill
	STORE_META=all $(BUILD)/tests/unit/checkpoint/store_meta
	FUSED=20000 $(BUILD)/tests/unit/exec/fuse
	PRODUCTS=5000 $(BUILD)/tests/unit/exec/fuse_products
	VIEWS=20000 $(BUILD)/tests/unit/exec/views_random
	BRANCHES=20000 $(BUILD)/tests/unit/exec/branches_random
	WHILES=5000 $(BUILD)/tests/unit/exec/whiles
	NESTS=1000 TF_TEST_DEVICE=TEST:0 $(BUILD)/tests/unit/exec/nests
	CANCELS=10000 $(BUILD)/tests/unit/exec/nests_cancelled
	CANCELS=2000 TF_TEST_DEVICE=TEST:0 $(BUILD)/tests/unit/exec/nests_cancelled
	CAPTURES=20000 $(BUILD)/tests/unit/exec/captures_random
	HAND_OVERS=20000 $(BUILD)/tests/unit/exec/hand_over_random
	CONVOLUTIONS=20000 $(BUILD)/tests/unit/ops/conv_few
	REDUCTIONS=20000 $(BUILD)/tests/unit/exec/reduce_random
	STATES=50 $(BUILD)/tests/unit/resource/states
	FAULTS=100000 $(BUILD)/tests/unit/collective/schedules
	SCHEDULES=2000 $(BUILD)/tests/unit/transport/collective_schedules
	ROUNDS=1000 $(BUILD)/tests/unit/transport/sum_server
	STORE_SWEEPS=18 $(BUILD)/tests/unit/checkpoint/store_calls
	STORE_SWEEPS=2 $(BUILD)/tests/unit/checkpoint/store_shards
	STORE_SAVES=1000 $(BUILD)/tests/unit/checkpoint/store_keep
	STORE_MERGES=10000 $(BUILD)/tests/unit/checkpoint/store_runs
	SLICES=20000 $(BUILD)/tests/unit/checkpoint/record_slices
	READER_ROUNDS=1000 $(BUILD)/tests/unit/checkpoint/store_beside
	SCOPES=2000 bats tests/tools/tf-graph-scopes.bats
	CHECKPOINT_SOAK=20 bats tests/e2e/checkpoint.bats
	@$(MAKE) -s signals
	PREEMPTIONS=500 JOB_PREEMPTIONS=100 bats -f 'any moment' tests/e2e/preempt.bats
	JOB_KILLS=50 bats -f 'killed at any moment' tests/e2e/backup.bats
	PARTS=10000 $(BUILD)/tests/unit/pass/part_random
	MULTIGRAPHS=3000 $(BUILD)/tests/unit/pass/multigraph
	PIECES=5000 $(BUILD)/tests/unit/pass/pieces
	OVERLAPS=5000 $(BUILD)/tests/unit/exec/regions_memory
	GRIDS=5000 $(BUILD)/tests/unit/pass/grid
	GRADIENT_TASKS=20000 $(BUILD)/tests/unit/pass/grad_tasks
	SHARD_ELEMENTS=500000000 bats tests/e2e/stuck.bats
	NULL_STEPS=10000000 bats tests/e2e/flat.bats
	ORDERS=10000 $(BUILD)/tests/unit/graph/order
	NETS=1000 bats tests/e2e/pipeline.bats
growth:
	@scripts/setup build check
	@$(MAKE) -s $(JOBS) all
	GROWTH_CHAIN=1000000 bats -f chains tests/e2e/growth.bats
	PATH=$(abspath $(BUILD))/bin:$$PATH python3 tests/growth/growth.py count all
	PATH=$(abspath $(BUILD))/bin:$$PATH python3 tests/growth/growth.py time
report-structure: lib $(BUILD)/lib/tf-tools/libtf-graph.so
	@scripts/report-structure
mutants:
	@scripts/setup build check
	@$(MAKE) -s $(JOBS) all unit
	tests/mutants -n $(or $(N),50) -s $(or $(SEED),1) $(addprefix -t ,$(TESTS)) $(addprefix -o ,CUDA=$(CUDA) CPU_ISAS='$(CPU_ISAS)') $(ROOM)
# What is to stay equal while code moves; BASE=FOLDER of another build's programs: what differs.
# Anew what the libraries export: after a program, libtf-jobs or a module has begun to call something.
exports: $(TEST_LIB) $(BIN_PARTS) $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard bin/*.c)) \
	$(foreach isa,$(CPU_ISAS),$(CPU_SRC:%.c=$(BUILD)/obj/cpu-$(isa)/%.o)) $(if $(NVCC),$(CUDA_SRC:%=$(BUILD)/obj/cuda/%.o)) \
	$(BUILD)/obj/transport/channel/tls_openssl.o \
	$(FAKE_KERNELS) $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tests/lib/device_test*.c tests/lib/fake_cuda*.c)) $(SHAPES)
	scripts/exports >$(EXPORTS).new
	mv $(EXPORTS).new $(EXPORTS)
digests: all
	@tests/digests $(BUILD)/bin > $(BUILD)/digests
	@[ -z "$(BASE)" ] || { tests/digests "$(BASE)" | diff - $(BUILD)/digests; }
bench bench-dist bench-checkpoint bench-techniques: all $(BENCHES) $(TEST_MODULES)
	@scripts/bench $(BENCH_$@)
# PyTorch may be fetched for it, which is large: not before there is a card.
bench-gpu: all
	@tests/bench/gpu.sh card
	@scripts/bench gpu

# Others see the public headers and library; the rest is for our own programs. The prefix may have
# spaces in it.
install: all
	@$(MAKE) -s install-files
TO = $(DESTDIR)$(PREFIX)
# $(call put,FOLDER,FILE...[,MODE]): copies files, of which there may be none, into a folder
put = install -d "$(TO)/$(1)"$(if $(strip $(2)), && install -m $(or $(3),644) $(2) "$(TO)/$(1)")
install-files: install-headers
	$(call put,lib/tf-tools,$(CPU_MODULES) $(TLS_MODULE) $(CUDA_MODULE) $(LIB))
	$(call put,lib,$(PUBLIC_LIB))
	ln -sf $(notdir $(PUBLIC_LIB)) "$(TO)/lib/libtf-tools.so"
	$(call put,lib/pkgconfig)
	printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$${prefix}/lib' 'includedir=$${prefix}/include/tf-tools' '' \
		'Name: tf-tools' 'Description: dataflow graphs: build, rewrite, place and execute' \
		'Version: $(VERSION)' 'Cflags: -I"$${includedir}"' \
		'Libs: -L"$${libdir}" -Wl,-rpath,"$${libdir}" -ltf-tools' >"$(TO)/lib/pkgconfig/tf-tools.pc"
	$(call put,bin,$(BINS) $(OVERVIEW),755)
	$(foreach tool,tool $(SCRIPT_TOOLS),$(call put,lib/tf-tools/$(tool),$(filter \
		$(BUILD)/lib/tf-tools/$(tool)/%,$(SCRIPT_PARTS))) && \
		$(call put,lib/tf-tools/$(tool),$(filter $(BUILD)/lib/tf-tools/$(tool)/%, \
		$(SCRIPT_PROGRAMS:%=$(BUILD)/lib/tf-tools/%)),755) &&) :
	$(call put,share/man/man1,$(MANS))
	$(call put,share/man/man5,$(FORMAT_MANS))
	$(call put,share/man/man7,$(OVERVIEW_MAN))
	[ -z "$(OVERVIEW_MAN)" ] || echo '.so man7/tf-tools.7' >"$(TO)/share/man/man1/tf.1"
	$(call put,share/tf-tools/prelude,$(PRELUDE))
	$(call put,share/bash-completion/completions,scripts/completion/tf-tools)
	for tool in $(notdir $(BINS) $(OVERVIEW)); do \
		ln -sf tf-tools "$(TO)/share/bash-completion/completions/$$tool" || exit; done
	$(call put,share/zsh/site-functions)
	install -m 644 scripts/completion/tf-tools "$(TO)/share/zsh/site-functions/_tf-tools"
	$(call put,share/doc/tf-tools,README.md LICENSE)
	$(call put,share/doc/tf-tools/docs,$(wildcard docs/*.md))
	$(call put,share/doc/tf-tools/docs/pictures,$(wildcard docs/pictures/*))
	$(call put,share/doc/tf-tools/scripts/cron,scripts/cron/crontab)
	$(call put,share/doc/tf-tools/scripts/cron,scripts/cron/restore-drill,755)
	$(call put,share/doc/tf-tools/scripts/systemd,$(wildcard scripts/systemd/*))
	$(call put,share/doc/tf-tools/examples,$(wildcard examples/feed*),755)
	$(call put,share/doc/tf-tools/examples,$(wildcard examples/*.md examples/*.lua examples/*.cluster))
	$(foreach dir,c data op python,$(call put,share/doc/tf-tools/examples/$(dir),$(wildcard \
		$(addprefix examples/$(dir)/*,.c .lua .py .gz .md))) &&) :
install-headers:
	$(call put,include/tf-tools,$(PUBLIC_HEADERS))
# What an installation would write is written elsewhere, and removed here by its names; so are the
# folders that are empty then and are ours alone.
uninstall: all
	@stage=$$(mktemp -d) && trap 'rm -rf "$$stage"' EXIT && \
	$(MAKE) -s install-files DESTDIR="$$stage" && cd "$$stage$(PREFIX)" && find . ! -type d -print0 | \
		{ cd "$(TO)" 2>/dev/null || exit 0; xargs -0 rm -f; \
		for folder in lib/tf-tools include/tf-tools share/tf-tools share/doc/tf-tools; do \
			[ ! -d "$$folder" ] || find "$$folder" -depth -type d -empty -delete; done; }
# Debian packages of an installation in /usr (deb-files: of what is built already).
DEBS ?= $(BUILD)/deb
deb: all
	@scripts/setup build deb
	@$(MAKE) -s deb-files
deb-files:
	@rm -rf "$(DEBS)" && $(MAKE) -s install-files DESTDIR="$(abspath $(DEBS))/stage" PREFIX=/usr >/dev/null
	@scripts/deb "$(DEBS)" $(VERSION)
help:
	@sed -n '/^#/!q; 2d; s/^# //p' Makefile

docs: $(BUILD)/bin/tf-op all
	{ $< list --markdown; $< list --types | scripts/ops-types; } >docs/ops.md
	PATH=$(abspath $(BUILD)/bin):$$PATH scripts/pictures

golden:
	cd tests/ops/cases && $(PYTHON) -W ignore golden.py $(GOLDEN)

clean:
	rm -rf build
-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
