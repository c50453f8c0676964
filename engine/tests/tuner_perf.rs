//! The tuner in `ringlab-perf` as a user runs it.

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

fn perf(line: &str, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ringlab-perf"));
    command.args(line.split_whitespace());
    for (name, _) in
        std::env::vars().filter(|(name, _)| name.starts_with("RINGLAB_") || name.starts_with("NCCL_"))
    {
        command.env_remove(name);
    }
    command.envs(variables.iter().copied()).output().unwrap()
}

fn out(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn refused(line: &str, variables: &[(&str, &str)]) -> String {
    let output = perf(line, variables);
    assert_ne!(output.status.code(), Some(0), "{line}");
    String::from_utf8(output.stderr).unwrap()
}

/// A folder of its own that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("ringlab-tuner-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_str(&std::fs::read_to_string(self.0.join(name)).unwrap()).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn fitted(folder: &Folder) -> String {
    let line = format!(
        "--tune-report=all_reduce,broadcast --tune-ranks 2,3 --tune-channels 1,2 -b 64 -e 16K -f 4 -n 2 --rounds 2 \
         --save-profile {} --json {}",
        folder.file("profile.json"),
        folder.file("report.json")
    );
    out(&perf(&line, &[]))
}

#[test]
fn a_report_measures_every_algorithm_and_its_profile_chooses_for_a_run() {
    let folder = Folder::new("report");
    let text = fitted(&folder);
    assert!(text.contains("# regret over all sizes (20): median"), "{text}");
    assert!(text.contains("# regret over sizes the profile had not seen (8)"), "{text}");
    let report = folder.json("report.json");
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * 2 * 5);
    for row in rows {
        let (chosen, best) = (row["chosen_us"].as_f64().unwrap(), row["best_us"].as_f64().unwrap());
        assert!(chosen >= best && row["regret_pct"].as_f64().unwrap() >= 0.0, "{row}");
    }
    let points = report["points"].as_array().unwrap();
    for algorithm in ["ring", "one_shot", "two_shot"] {
        assert_eq!(
            points.iter().filter(|p| p["algorithm"] == algorithm).count(),
            2 * 2 * 2 * 5,
            "{algorithm}"
        );
    }
    assert!(report["profile"]["origin"]["command"].as_str().unwrap().contains("--tune-report"));

    let profile = folder.file("profile.json");
    let run = format!("--algo auto --profile {profile} -g 3 -b 64 -e 4K -f 8 -n 1 --rounds 1");
    let text = out(&perf(&format!("{run} --json {}", folder.file("run.json")), &[]));
    assert_eq!(text.lines().filter(|line| line.contains("predicted")).count(), 3, "{text}");
    let choice = &folder.json("run.json")["rows"][0]["choice"];
    assert!(choice["candidates"].as_array().unwrap().len() > 8, "{choice}");

    let forced = out(&perf(&run, &[("RINGLAB_ALGO", "two_shot"), ("RINGLAB_MAX_NCHANNELS", "1")]));
    assert_eq!(forced.matches("B: two_shot Simple, 1 channel, predicted").count(), 3, "{forced}");
    let again =
        out(&perf(&format!("--tune-report --profile {profile} -g 2 -b 64 -e 256 -f 4 -n 1 --rounds 1"), &[]));
    assert!(again.contains("# regret over sizes the profile had not seen (2)"), "{again}");
}

#[test]
fn a_table_decides_sizes_and_what_cannot_be_done_is_refused() {
    let folder = Folder::new("table");
    fitted(&folder);
    let (profile, table) = (folder.file("profile.json"), folder.file("table"));
    std::fs::write(&table, "all_reduce 2 0..1K two_shot Simple 2\n* * 1K.. ring * *\n").unwrap();
    let run = format!("--algo auto --profile {profile} -g 2 -b 512 -e 1K -f 2 -n 1 --rounds 1");
    let ruled = out(&perf(&run, &[("RINGLAB_TUNER_FILE", &table)]));
    assert!(ruled.contains("# 512 B: two_shot Simple, 2 channels"), "{ruled}");
    assert!(ruled.contains("# 1024 B: ring Simple"), "{ruled}");

    let both = refused(&run, &[("RINGLAB_TUNER_FILE", &table), ("RINGLAB_ALGO", "^two_shot")]);
    assert!(both.contains("nothing is left to run") && both.contains("table:1 asks for two_shot"), "{both}");
    assert!(
        refused(&run, &[("RINGLAB_ALGO", "spiral")]).contains("unknown algorithm `spiral`; known: ring,")
    );
    assert!(refused(&run, &[("RINGLAB_PROTO", "LL128")]).contains("RINGLAB_PROTO=LL128 leaves Simple out"));
    assert!(
        refused(&run, &[("RINGLAB_TUNER_FILE", "/nowhere/table")]).contains("cannot read /nowhere/table")
    );
    assert!(refused("--algo auto -g 2 -b 8 -e 8", &[]).contains("--save-profile"));
    std::fs::write(&table, "all_reduce 2\n").unwrap();
    assert!(refused(&run, &[("RINGLAB_TUNER_FILE", &table)]).contains("table:1: 2 fields"));
    std::fs::write(&table, "{}").unwrap();
    let line = format!("--explain --profile {table} -g 2 -b 8 -e 8");
    assert!(refused(&line, &[]).contains("is no tuner profile: missing field"));
    let wide = format!("--algo auto --profile {profile} -g 4 -b 8 -e 8");
    assert!(refused(&wide, &[]).contains("no figures for all_reduce on 4 ranks (it has 2 ranks, 3 ranks)"));
}

#[test]
fn explaining_runs_nothing_and_speaks_both_languages() {
    let english = out(&perf("--explain -g 8 -b 1M -e 2M -f 2", &[]));
    assert!(english.contains("all_reduce, 8 ranks, 1048576 bytes, model NCCL 2.22.3, DGX H100, 1 x 8 GPUs"));
    assert!(
        english.contains("- Ring LL is chosen") && english.contains("- NVLS Simple is chosen"),
        "{english}"
    );
    let chinese = out(&perf("--explain -g 8 -b 1M -e 1M --lang zh", &[]));
    assert!(chinese.contains("- Ring LL 被选中"), "{chinese}");
    let forced = out(&perf("--explain -g 8 -b 1M -e 1M --collective broadcast", &[("NCCL_ALGO", "Tree")]));
    assert!(forced.contains("NCCL falls back to Ring against their wording"), "{forced}");
    assert!(refused("--explain -g 9 -b 8 -e 8", &[]).contains("1 to 8 ranks a node"));
    assert!(refused("--explain -g 8 -b 8 -e 8 --collective gather", &[]).contains("sends and receives"));
}

#[test]
fn a_communicator_of_ones_own_is_explained() {
    use ringlab_engine::tuner::nccl::Comm;
    let folder = Folder::new("comm");
    let path = folder.file("comm.json");
    let mut comm = Comm::dgx_h100(4, 8).unwrap();
    comm.name = "a cluster".into();
    std::fs::write(&path, serde_json::to_string(&comm).unwrap()).unwrap();
    let text = out(&perf(
        &format!("--explain --profile nccl:{path} -b 1G -e 1G --json {}", folder.file("out.json")),
        &[],
    ));
    assert!(text.contains("32 ranks, 1073741824 bytes, model NCCL 2.22.3, a cluster"), "{text}");
    assert_eq!(folder.json("out.json")["choices"][0]["candidates"].as_array().unwrap().len(), 18);
    comm.channels = 0;
    std::fs::write(&path, serde_json::to_string(&comm).unwrap()).unwrap();
    assert!(
        refused(&format!("--explain --profile nccl:{path} -b 8 -e 8"), &[]).contains("NCCL takes 1 to 32")
    );
}
