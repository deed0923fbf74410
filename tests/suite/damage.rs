//! Truncated, corrupted and foreign files: one clear error or the readable part,
//! never a panic, never an escape sequence.

use super::support::{packed, read, scratch, unpacked};
use std::fs;
use std::path::PathBuf;

fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = scratch().join(name);
    fs::write(&path, bytes).unwrap();
    path
}

fn sentence(path: &std::path::Path) -> String {
    let text = read(path).unwrap_err().to_string();
    assert!(text.contains(&*path.file_name().unwrap().to_string_lossy()), "{text}");
    assert!(!text.contains('\n'), "{text}");
    text
}

#[test]
fn files_that_are_no_reports_get_one_sentence() {
    assert!(sentence(&file("empty.sqlite", b"")).contains("empty"));
    let folder = scratch().join("folder");
    fs::create_dir_all(&folder).unwrap();
    assert!(sentence(&folder).contains("a folder without a report"));
    assert!(sentence(&file("lfs.sqlite", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")).contains("git lfs pull"));
    assert!(sentence(&file("x.ncu-rep", b"NVR\0\x01\x02")).contains("file header"));
    assert!(sentence(&file("stream.qdstrm", b"U3w[END]NVIDIA Nsight Systems Stream 1")).contains("QdstrmImporter"));
    assert!(sentence(&file("noise.bin", &[7; 100])).contains("it starts with 07 07"));
    assert!(sentence(&file("other.sqlite", &fs::read(other_database()).unwrap())).contains("not an Nsight Systems export"));
    assert!(read(&scratch().join("not-there.sqlite")).unwrap_err().to_string().contains("No such file"));
}

fn other_database() -> PathBuf {
    let path = scratch().join("cookies.sqlite");
    let _ = fs::remove_file(&path);
    rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE cookies (a)").unwrap();
    path
}

#[test]
fn an_export_that_is_cut_says_so_at_every_length() {
    let bytes = fs::read(unpacked("single")).unwrap();
    for part in 1..20 {
        let path = file("cut.sqlite", &bytes[..bytes.len() * part / 20]);
        let text = sentence(&path);
        assert!(text.contains("truncated") || text.contains("damaged"), "{part}: {text}");
    }
}

#[test]
fn an_export_with_a_journal_beside_it_is_still_being_written() {
    let path = unpacked("single");
    fs::write(path.with_extension("sqlite-journal"), b"x").unwrap();
    assert!(sentence(&path).contains("still being written"));
}

#[test]
fn flipped_bytes_anywhere_give_a_profile_or_a_sentence() {
    let bytes = fs::read(unpacked("graph_whole")).unwrap();
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut outcomes = [0, 0];
    for round in 0..300 {
        let mut damaged = bytes.clone();
        for _ in 0..=(round % 7) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let at = usize::try_from(state % bytes.len() as u64).unwrap();
            damaged[at] ^= (state >> 32) as u8 | 1;
        }
        let path = file("flipped.sqlite", &damaged);
        match read(&path) {
            Ok(profile) => {
                outcomes[0] += 1;
                let paths = warpscope::analysis::Paths::from_profile(&profile);
                for by in warpscope::analysis::GroupBy::ALL {
                    let _ = warpscope::analysis::Grouping::from_profile(&profile, by, Some(&paths));
                }
                let _ = warpscope::analysis::Overview::from_profile(&profile);
                if round % 5 == 0 {
                    let mut explorer = super::support::Explorer::open(std::slice::from_ref(&path), (200, 50));
                    for keys in ["g r", "g d", "enter", "i", "f", "esc", "S", "n"] {
                        explorer.press(keys);
                        explorer.screen();
                    }
                }
            }
            Err(e) => {
                outcomes[1] += 1;
                assert!(!e.to_string().is_empty());
            }
        }
    }
    assert!(outcomes[0] > 0 && outcomes[1] > 0, "{outcomes:?}");
}

#[test]
fn figures_that_no_gpu_has_are_drawn_without_harm() {
    for sql in [
        "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET registersPerThread = 134217728, blockX = 4294967295, blockY = 4294967295",
        "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET staticSharedMemory = 9223372036854775807, dynamicSharedMemory = 9223372036854775807, gridX = 4294967295, gridY = 4294967295, gridZ = 4294967295",
        "UPDATE TARGET_INFO_GPU SET threadsPerWarp = 1, maxWarpsPerSm = 4294967295, maxBlocksPerSm = 4294967295, smCount = 0, maxRegistersPerSm = 1",
        "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = 9223372036854775000, end = 9223372036854775807, blockX = 0",
    ] {
        let mut explorer = super::support::Explorer::open(&[super::support::edited("single", sql)], (200, 50));
        for keys in ["enter", "J s", "s d", "esc", "g c", "g s", "i", "n"] {
            explorer.press(keys);
            explorer.screen();
        }
    }
}

#[test]
fn damaged_packing_says_where() {
    let whole = fs::read(packed("single")).unwrap();
    let text = sentence(&file("cut.sqlite.zst", &whole[..whole.len() / 2]));
    assert!(text.contains("damaged in the compressed data"), "{text}");
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gz, &fs::read(unpacked("single")).unwrap()).unwrap();
    let gz = gz.finish().unwrap();
    assert_eq!(read(&file("whole.sqlite.gz", &gz)).unwrap().launches.len(), 200, ".gz is opened as it is");
    let text = sentence(&file("cut.sqlite.gz", &gz[..gz.len() / 2]));
    assert!(text.contains("damaged in the compressed data"), "{text}");
}

#[test]
fn csv_with_ragged_rows_is_read_and_the_bad_ones_are_counted() {
    let head = "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name\n";
    let good = "10,5,1,1,1,1,32,1,1,16,0.000,0.000,,,,,NVIDIA H200 (0),1,,7,k(int)\n";
    let text = format!(
        "Processing [x.sqlite] with [y.py]...\n\n{head}{good}oops\n20,x,1\n\"30\",7,2,2,1,1,64,1,1,16,0.001,0.164,,,,,NVIDIA H200 (0),1,,7,\"void n::k<int, 3>(int)\"\n"
    );
    let profile = read(&file("ragged.csv", text.as_bytes())).unwrap();
    assert_eq!(profile.launches.len(), 2);
    assert!(profile.notes[0].text.contains("2 rows could not be read (the first is line 5)"), "{}", profile.notes[0].text);
    assert_eq!(profile.kernels[1].function(), "k");
    let unit = head.replace("Duration (ns)", "Duration (fortnights)");
    assert!(sentence(&file("unit.csv", unit.as_bytes())).contains("fortnights"));
    assert!(read(&file("headonly.csv", head.as_bytes())).unwrap().notes.iter().any(|n| n.text.contains("lists no kernels")));
}
