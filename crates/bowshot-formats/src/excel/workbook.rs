//! A workbook: its sheets, shared strings and date formats.

use super::date_time::{self, Format};
use super::xml::{Part, Parts};
use crate::data_file::DataFile;
use crate::zip::{self, Member};
use bowshot_object_store::Error;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;

const MAX_SHARED_BYTES: usize = 512 << 20;

#[derive(Debug, Default)]
pub(super) struct Workbook {
    sheets: Vec<Sheet>,
    texts: Vec<String>,
    /// What numbers of each style are.
    styles: Vec<Format>,
    since_1904: bool,
}

#[derive(Debug)]
struct Sheet {
    name: String,
    hidden: bool,
    member: Member,
}

impl Workbook {
    pub(super) fn open(file: &Arc<DataFile>) -> Result<Self, Error> {
        let members = zip::members(file)?;
        let mut book = Self::of_sheets(file, &members)?;
        let broken = |error: io::Error| Error::corrupt(file.path(), error);
        if let Some(parts) = part(file, &members, "xl/sharedStrings.xml")? {
            book.texts = shared(parts).map_err(broken)?;
        }
        if let Some(parts) = part(file, &members, "xl/styles.xml")? {
            book.styles = styles(parts).map_err(broken)?;
        }
        Ok(book)
    }

    /// The sheets alone, which is enough to find them.
    fn of_sheets(file: &Arc<DataFile>, members: &[Member]) -> Result<Self, Error> {
        let find = |path: &str| members.iter().find(|member| member.name.eq_ignore_ascii_case(path));
        let Some(workbook) = part(file, members, "xl/workbook.xml")? else {
            return Err(Error::corrupt(file.path(), "it is not an Excel workbook"));
        };
        let broken = |error: io::Error| Error::corrupt(file.path(), error);
        let mut book = Self::default();
        let targets = match part(file, members, "xl/_rels/workbook.xml.rels")? {
            Some(parts) => relations(parts).map_err(broken)?,
            None => HashMap::new(),
        };
        for (name, id, hidden) in book.read_sheets(workbook).map_err(broken)? {
            let Some(target) = targets.get(&id) else { continue };
            let path = match target.strip_prefix('/') {
                Some(path) => path.to_owned(),
                None => format!("xl/{target}"),
            };
            // Sheets that are charts have other paths.
            if let Some(member) = find(&path).filter(|member| member.name.contains("worksheets/")) {
                book.sheets.push(Sheet { name, hidden, member: member.clone() });
            }
        }
        Ok(book)
    }

    /// Names of the sheets that are not hidden and have a cell.
    pub(super) fn filled(file: &Arc<DataFile>) -> Result<Vec<String>, Error> {
        let book = Self::of_sheets(file, &zip::members(file)?)?;
        let mut names = Vec::new();
        for sheet in book.sheets.into_iter().filter(|sheet| !sheet.hidden) {
            let filled = has_cells(read(file, &sheet.member)?);
            if filled.map_err(|error| Error::corrupt(file.path(), error))? {
                names.push(sheet.name);
            }
        }
        Ok(names)
    }

    /// Name, relation and whether it is hidden, of each sheet.
    fn read_sheets(&mut self, mut parts: Parts) -> io::Result<Vec<(String, String, bool)>> {
        let mut sheets = Vec::new();
        loop {
            match parts.next()? {
                Part::Open(tag) if tag.name == b"sheet" => {
                    if let (Some(name), Some(id)) = (tag.get("name"), tag.get("id")) {
                        let hidden = tag.get("state").is_some_and(|state| state != "visible");
                        sheets.push((name.to_owned(), id.to_owned(), hidden));
                    }
                }
                Part::Open(tag) if tag.name == b"workbookPr" => {
                    self.since_1904 = matches!(tag.get("date1904"), Some("1" | "true"));
                }
                Part::End => return Ok(sheets),
                _ => {}
            }
        }
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.sheets.iter().map(|sheet| sheet.name.clone()).collect()
    }

    /// The sheet of a name, else the first that is not hidden.
    fn find(&self, name: Option<&str>) -> Option<&Sheet> {
        match name {
            Some(name) => self.sheets.iter().find(|sheet| sheet.name.eq_ignore_ascii_case(name)),
            None => self.sheets.iter().find(|sheet| !sheet.hidden).or(self.sheets.first()),
        }
    }

    pub(super) fn name_of(&self, name: Option<&str>) -> Option<&str> {
        self.find(name).map(|sheet| sheet.name.as_str())
    }

    pub(super) fn sheet(&self, file: &DataFile, name: Option<&str>) -> Result<&Member, Error> {
        self.find(name).map(|sheet| &sheet.member).ok_or_else(|| {
            let asked = name.map_or_else(|| "sheet".to_owned(), |name| format!("sheet `{name}`"));
            Error::Options {
                detail: format!("`{}` has no {asked}", file.path().display()),
                hint: format!("the sheets are {}", self.names().join(", ")),
            }
        })
    }

    pub(super) fn shared(&self, place: &str) -> Option<&str> {
        self.texts.get(place.trim().parse::<usize>().ok()?).map(String::as_str)
    }

    pub(super) fn moment(&self, number: &str, style: Option<&str>) -> Option<String> {
        let format = self.styles.get(style?.parse::<usize>().ok()?)?;
        date_time::shown(number, *format, self.since_1904)
    }
}

fn part(file: &Arc<DataFile>, members: &[Member], path: &str) -> Result<Option<Parts>, Error> {
    let member = members.iter().find(|member| member.name.eq_ignore_ascii_case(path));
    member.map(|member| read(file, member)).transpose()
}

fn has_cells(mut parts: Parts) -> io::Result<bool> {
    loop {
        match parts.next()? {
            Part::Open(tag) if matches!(tag.name.as_slice(), b"v" | b"is") && !tag.empty => return Ok(true),
            Part::Close(name) if name == b"sheetData" => return Ok(false),
            Part::Open(tag) if tag.name == b"sheetData" && tag.empty => return Ok(false),
            Part::End => return Ok(false),
            _ => {}
        }
    }
}

fn read(file: &Arc<DataFile>, member: &Member) -> Result<Parts, Error> {
    Ok(Parts::new(zip::open(file, member)?.0))
}

/// Paths by the names that sheets are related by.
fn relations(mut parts: Parts) -> io::Result<HashMap<String, String>> {
    let mut targets = HashMap::new();
    loop {
        match parts.next()? {
            Part::Open(tag) if tag.name == b"Relationship" => {
                if let (Some(id), Some(target)) = (tag.get("Id"), tag.get("Target")) {
                    targets.insert(id.to_owned(), target.to_owned());
                }
            }
            Part::End => return Ok(targets),
            _ => {}
        }
    }
}

/// The texts that cells share, in their order. What is only there to say how a text is pronounced is left out.
fn shared(mut parts: Parts) -> io::Result<Vec<String>> {
    let (mut texts, mut bytes): (Vec<String>, usize) = (Vec::new(), 0);
    loop {
        match parts.next()? {
            Part::Open(tag) if tag.name == b"si" => texts.push(String::new()),
            Part::Open(tag) if tag.name == b"rPh" && !tag.empty => {
                parts.text_within()?;
            }
            Part::Open(tag) if tag.name == b"t" && !tag.empty => {
                let text = parts.text_within()?;
                bytes += text.len();
                if bytes > MAX_SHARED_BYTES {
                    return Err(io::Error::other("its texts are too long"));
                }
                if let Some(last) = texts.last_mut() {
                    last.push_str(&text);
                }
            }
            Part::End => return Ok(texts),
            _ => {}
        }
    }
}

/// What numbers are in each style of cells.
fn styles(mut parts: Parts) -> io::Result<Vec<Format>> {
    let (mut own, mut styles, mut cells) = (HashMap::new(), Vec::new(), false);
    loop {
        match parts.next()? {
            Part::Open(tag) if tag.name == b"numFmt" => {
                if let (Some(id), Some(code)) = (tag.get("numFmtId"), tag.get("formatCode")) {
                    own.insert(id.to_owned(), date_time::written(code));
                }
            }
            Part::Open(tag) if tag.name == b"cellXfs" => cells = !tag.empty,
            Part::Close(name) if name == b"cellXfs" => cells = false,
            Part::Open(tag) if tag.name == b"xf" && cells => {
                let id = tag.get("numFmtId").unwrap_or("0");
                let usual = || date_time::usual(id.parse().unwrap_or(0));
                styles.push(own.get(id).copied().unwrap_or_else(usual));
            }
            Part::End => return Ok(styles),
            _ => {}
        }
    }
}
