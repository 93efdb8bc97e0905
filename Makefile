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

# Until the study's other experiments exist: make data, run the micro-benchmark, print its tables.
study: deps
	@$(MAKE) --no-print-directory all
	@test -f $(STUDY_DATA)/list.csv || { \
	    echo "Making 2,048 photos of ImageNet's kind in $(STUDY_DATA) ..."; \
	    $(BUILD)/millrace generate --count 2048 --out $(STUDY_DATA); }
	$(BUILD)/millrace inspect $(STUDY_DATA)
	$(BUILD)/millrace bench --data $(STUDY_DATA) --threads 1,2,4,8 --cold --json millrace-study.json
	$(BUILD)/millrace bench --data $(STUDY_DATA) --threads 1,2,4,8 --cold --engine uring || \
	    echo "(the uring engine is not available here)"
	$(BUILD)/millrace bench --data $(STUDY_DATA) --map decode --threads 1,2 --runs 3 --cold
	@echo "Results: millrace-study.json"

install: all
	meson install -C $(BUILD)

clean:
	rm -rf $(BUILD)
