//! Looks up functions by address in a native module (an executable or library). The file is read from its path in the
//! trace, provided that it is still the file that was loaded.
//!
//! Files are not trusted, because a trace may name any file. Only the necessary parts are read, up to a size limit.

use super::host_sample_rows::ModuleRow;
use crate::launch::open::open_regular;
use object::LittleEndian as LE;
use object::elf::{
    ELFCOMPRESS_ZLIB, ELFCOMPRESS_ZSTD, EM_AARCH64, EM_X86_64, ET_DYN, ET_EXEC, FileHeader64, SHT_DYNSYM, SHT_SYMTAB, STT_FUNC,
    STT_GNU_IFUNC, Sym64,
};
use object::read::elf::{CompressionHeader, FileHeader, NoteIterator, ProgramHeader, SectionHeader, SectionTable, Sym};
use object::{ReadCache, ReadRef};
use std::borrow::Cow;
use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

type Cache = ReadCache<File>;

/// Maximum size of one part of a file to read, and of all parts read for a trace, bytes.
const LARGEST_PART: u64 = 64 << 20;
const LARGEST_TOTAL: u64 = 256 << 20;
/// Maximum number of times that a symbol is matched with an address. In a damaged file, symbols may overlap, so that
/// the number of matches would be huge.
const MOST_STEPS: u64 = 50_000_000;

/// Limits on reading the modules of a trace.
#[derive(Debug)]
pub struct Allowance {
    bytes: u64,
}

impl Default for Allowance {
    fn default() -> Self {
        Self { bytes: LARGEST_TOTAL }
    }
}

impl Allowance {
    /// Deducts the size of one part; `None` if it exceeds the limit per part or the remaining bytes.
    pub fn take(&mut self, bytes: u64) -> Option<()> {
        self.bytes = self.bytes.checked_sub(bytes).filter(|_| bytes <= LARGEST_PART)?;
        Some(())
    }
}

/// A 64-bit ELF file that is a module of the trace, or that contains its debug information.
pub struct ModuleFile {
    cache: Cache,
}

/// Parts of an open file.
pub struct Parts<'a> {
    cache: &'a Cache,
    sections: SectionTable<'a, FileHeader64<LE>, &'a Cache>,
    header: &'a FileHeader64<LE>,
}

impl ModuleFile {
    /// Opens the file of a module, if it is the one that was loaded.
    pub fn open_module(path: &Path, row: &ModuleRow) -> Option<Self> {
        let file = open_regular(path).ok()?;
        let about = file.metadata().ok()?;
        let same = about.size() == row.file_bytes && u64::try_from(about.mtime()).ok() == Some(row.file_time);
        let out = Self { cache: ReadCache::new(file) };
        let id = out.parts()?.build_id();
        let is_it = if row.build_id.is_empty() { id.is_none() && same } else { id.as_deref() == Some(&row.build_id) };
        is_it.then_some(out)
    }

    /// Opens a module's separate debug file in `/usr/lib/debug/.build-id`, where distributions install it.
    pub fn open_debug(build_id: &[u8]) -> Option<Self> {
        let (first, rest) = build_id.split_first()?;
        let mut path = format!("/usr/lib/debug/.build-id/{first:02x}/");
        for byte in rest {
            write!(path, "{byte:02x}").ok()?;
        }
        let path = PathBuf::from(path + ".debug");
        let out = Self { cache: ReadCache::new(open_regular(&path).ok()?) };
        let id = out.parts()?.build_id();
        (id.as_deref() == Some(build_id)).then_some(out)
    }

    pub fn parts(&self) -> Option<Parts<'_>> {
        let header = FileHeader64::<LE>::parse(&self.cache).ok()?;
        // Refuse files whose counts do not fit into the ELF header: they are stored in a section header instead, where
        // a damaged file may contain any value.
        (header.e_shnum(LE) > 0 && header.e_phnum(LE) < u16::MAX).then_some(())?;
        let known = matches!(header.e_machine(LE), EM_X86_64 | EM_AARCH64) && matches!(header.e_type(LE), ET_EXEC | ET_DYN);
        let sections = header.sections(LE, &self.cache).ok().filter(|_| known && header.is_little_endian())?;
        Some(Parts { cache: &self.cache, sections, header })
    }
}

/// A function that contains an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundSymbol {
    pub name: String,
    pub start: u64,
}

/// The best symbol so far for an address: its start, whether it is global, and the position of its name in the file.
#[derive(Clone, Copy)]
struct Best {
    start: u64,
    global: bool,
    name: u64,
    name_end: u64,
}

impl<'a> Parts<'a> {
    fn build_id(&self) -> Option<Vec<u8>> {
        const MOST: u64 = 64 << 10;
        let notes = self.header.program_headers(LE, self.cache).ok()?.iter().filter(|s| s.p_filesz(LE) <= MOST);
        let in_segments = notes.filter_map(|s| s.notes(LE, self.cache).ok().flatten()).find_map(id_in_notes);
        in_segments.or_else(|| {
            let sections = self.sections.iter().filter(|s| s.sh_size(LE) <= MOST);
            sections.filter_map(|s| s.notes(LE, self.cache).ok().flatten()).find_map(id_in_notes)
        })
    }

    /// Address and contents of a section; `None` if it is missing, or larger than what is allowed.
    pub fn section(&self, name: &str, allowance: &mut Allowance) -> Option<(u64, Cow<'a, [u8]>)> {
        let (_, section) = self.sections.section_by_name(LE, name.as_bytes())?;
        let (_, bytes) = section.file_range(LE)?;
        allowance.take(bytes)?;
        let Some((header, offset, packed)) = section.compression(LE, self.cache).ok()? else {
            return Some((section.sh_addr(LE), Cow::Borrowed(section.data(LE, self.cache).ok()?)));
        };
        let size = header.ch_size(LE);
        allowance.take(size)?;
        let packed = self.cache.read_bytes_at(offset, packed).ok()?;
        let mut whole = Vec::new();
        match header.ch_type(LE) {
            ELFCOMPRESS_ZLIB => flate2::read::ZlibDecoder::new(packed).take(size).read_to_end(&mut whole).ok()?,
            ELFCOMPRESS_ZSTD => zstd::Decoder::new(packed).ok()?.take(size).read_to_end(&mut whole).ok()?,
            _ => return None,
        };
        Some((section.sh_addr(LE), Cow::Owned(whole)))
    }

    pub fn has_section(&self, name: &str) -> bool {
        self.sections.section_by_name(LE, name.as_bytes()).is_some_and(|(_, s)| s.file_range(LE).is_some_and(|r| r.1 > 0))
    }

    /// Addresses of the procedure linkage tables, through which other modules are called.
    pub fn linkage_tables(&self) -> Vec<Range<u64>> {
        let table = |name: &str| {
            let (_, section) = self.sections.section_by_name(LE, name.as_bytes())?;
            Some(section.sh_addr(LE)..section.sh_addr(LE).checked_add(section.sh_size(LE))?)
        };
        [".plt", ".plt.sec", ".plt.got"].into_iter().filter_map(table).collect()
    }

    /// Finds the functions that contain these addresses, which must be sorted.
    pub fn find_symbols(&self, addresses: &[u64], allowance: &mut Allowance) -> Vec<Option<FoundSymbol>> {
        let mut best: Vec<Option<Best>> = vec![None; addresses.len()];
        let mut steps = 0;
        for section in self.sections.iter().filter(|s| matches!(s.sh_type(LE), SHT_SYMTAB | SHT_DYNSYM)) {
            self.search_symbols(section, addresses, &mut best, &mut steps, allowance);
        }
        best.into_iter()
            .map(|found| {
                let found = found?;
                let name = self.cache.read_bytes_at_until(found.name..found.name_end, 0).ok()?;
                let name = String::from_utf8_lossy(name).into_owned();
                (!name.is_empty()).then_some(FoundSymbol { name, start: found.start })
            })
            .collect()
    }

    fn search_symbols(
        &self,
        section: &'a object::elf::SectionHeader64<LE>,
        addresses: &[u64],
        best: &mut [Option<Best>],
        steps: &mut u64,
        allowance: &mut Allowance,
    ) -> Option<()> {
        allowance.take(section.sh_size(LE))?;
        let symbols: &[Sym64<LE>] = section.data_as_array(LE, self.cache).ok()?;
        let (texts, texts_bytes) = self.sections.section(section.link(LE)).ok()?.file_range(LE)?;
        let name_end = texts.checked_add(texts_bytes)?;
        for symbol in symbols {
            let (start, size) = (symbol.st_value(LE), symbol.st_size(LE));
            if !matches!(symbol.st_type(), STT_FUNC | STT_GNU_IFUNC) || symbol.is_undefined(LE) || size == 0 {
                continue;
            }
            let first = addresses.partition_point(|&a| a < start);
            let inside = addresses.iter().skip(first).take_while(|&&a| a - start < size).count();
            *steps += inside as u64;
            if *steps > MOST_STEPS {
                return None;
            }
            let name = texts.checked_add(u64::from(symbol.st_name(LE)))?;
            let new = Best { start, global: !symbol.is_local(), name, name_end };
            for found in best.iter_mut().skip(first).take(inside) {
                // Among aliases, prefer a global symbol, because its name is better known.
                if found.is_none_or(|f| (f.start, f.global) < (new.start, new.global)) {
                    *found = Some(new);
                }
            }
        }
        Some(())
    }
}

fn id_in_notes(mut notes: NoteIterator<'_, FileHeader64<LE>>) -> Option<Vec<u8>> {
    while let Ok(Some(note)) = notes.next() {
        if note.name() == b"GNU" && note.n_type(LE) == object::elf::NT_GNU_BUILD_ID {
            return Some(note.desc().to_vec());
        }
    }
    None
}
