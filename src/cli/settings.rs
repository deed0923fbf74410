//! Sources of the explorer's settings.

use super::failure::Failure;
use super::global_args::{GlobalArgs, Opening};
use crate::app::{KeyScope, Location, Settings};
use crate::config::{self, ColorMode, Config};
use crate::ui::theme;

/// Returns an environment variable, with invalid UTF-8 replaced.
pub fn env_variable(name: &str) -> Option<String> {
    std::env::var_os(name).map(|v| v.to_string_lossy().into_owned())
}

/// Merges settings from the command line, the configuration file and the environment, in this order.
pub fn resolve_settings(
    args: &GlobalArgs,
    opening: &Opening,
    config: &Config,
    library: &theme::Library,
    mode: ColorMode,
) -> Result<Settings, Failure> {
    let by_mode = match mode {
        ColorMode::None => "mono",
        ColorMode::Sixteen => "sixteen",
        _ => "dark",
    };
    let theme = args.theme.as_deref().or(config.theme.as_deref()).unwrap_or(by_mode);
    library.theme(theme, mode).map_err(Failure::wrong)?;
    let defaults = Settings::default();
    let address = Location {
        show: opening.first,
        kernel: opening.kernel.clone(),
        launch: opening.launch,
        result: opening.result,
        range: opening.range.clone(),
        window: opening.between.to_window().map_err(Failure::usage)?,
    };
    let first = match opening.first {
        Some(KeyScope::Overview) => Some(config::First::Overview),
        Some(_) => Some(config::First::Kernels),
        None => None,
    };
    Ok(Settings {
        theme: theme.to_owned(),
        themes: library.names(),
        keymap: crate::app::Keymap::with_user_keys(&config.keys).map_err(Failure::wrong)?,
        group: opening.group.or(config.group).unwrap_or(defaults.group),
        sort: opening.sort.or(config.sort).unwrap_or(defaults.sort),
        pins: config.pins.clone(),
        first: first.or(config.first).unwrap_or(config::First::Overview),
        address: (!address.is_plain()).then_some(address),
    })
}
