# A thin front: Meson builds.  `make` builds build/millrace; `make test` and `make study` also install
# what is missing on Debian.
BUILD ?= build
STUDY_DATA ?= millrace-data

.PHONY: all deps test study install clean

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD)

$(BUILD)/build.ninja:
	meson setup $(BUILD)

deps:
	@tools/install-deps

test: deps
	@$(MAKE) --no-print-directory all
	meson test -C $(BUILD) --print-errorlogs

# Until the study's other experiments exist: make data, run the micro-benchmark, print its table.
study: deps
	@$(MAKE) --no-print-directory all
	@test -d $(STUDY_DATA) || { \
	    echo "Making 2,048 files of ImageNet's sizes in $(STUDY_DATA) ..."; \
	    $(BUILD)/bench/make_files $(STUDY_DATA).tmp 2048 && mv $(STUDY_DATA).tmp $(STUDY_DATA); }
	$(BUILD)/millrace inspect $(STUDY_DATA)
	$(BUILD)/millrace bench --data $(STUDY_DATA) --threads 1,2,4,8 --cold --json millrace-study.json
	$(BUILD)/millrace bench --data $(STUDY_DATA) --threads 1,2,4,8 --cold --engine uring || \
	    echo "(the uring engine is not available here)"
	@echo "Results: millrace-study.json"

install: all
	meson install -C $(BUILD)

clean:
	rm -rf $(BUILD)
