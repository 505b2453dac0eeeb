/// How the progress of downloads is shown, and what of it.
struct DownloadForm: Hashable, Sendable {
    /// The form, which is neither automatic nor one that the terminal cannot show.
    var progress: GlobalOptions.Progress
    /// Whether failures are told.
    var tellsErrors: Bool
    /// Whether each failure that passes is told, though a bar shows it.
    var tellsAll: Bool
    /// Whether more than ASCII may be used.
    var usesUnicode: Bool
    /// Whether colours may be used.
    var usesColour: Bool

    /// What the options ask for and the surroundings allow: without a terminal, or on one that cannot move its cursor,
    /// there are neither bars nor colours.
    /// - Parameter variable: The environment.
    init(
        _ global: GlobalOptions, isTerminal: Bool, usesUnicode: Bool, variable: (String) -> String?
    ) {
        let canDraw = isTerminal && !["", "dumb"].contains(variable("TERM") ?? "")
        progress =
            switch global.progress {
            case _ where global.isSilent: .none
            case .auto, .bar: canDraw ? .bar : .plain
            case .plain, .json, .none: global.progress
            }
        tellsErrors = global.tellsErrors
        tellsAll = global.isVerbose
        self.usesUnicode = usesUnicode
        usesColour = canDraw && (variable("NO_COLOR") ?? "").isEmpty
    }

    /// Whether what happens is told in words.
    var tellsPeople: Bool { progress == .bar || progress == .plain }
}
