/// What holds for the whole command line, whichever group it stands in.
struct GlobalOptions: Sendable {
    /// How a transfer to a file shows how far it has come.
    enum Progress: String, Sendable, CaseIterable {
        /// A bar on a terminal, lines elsewhere.
        case auto
        /// A bar, drawn again in place.
        case bar
        /// Lines.
        case plain
        /// One JSON object a line.
        case json
        /// Nothing.
        case none
    }

    var isSilent = false
    var showsErrors = false
    var isVerbose = false
    var stopsAtFirstError = false
    /// Whether all transfers are made at the same time.
    var isParallel = false
    /// How many of them at most.
    var parallelLimit = 50
    var progress = Progress.auto
    /// The file of `--har`.
    var harFile: String?
    /// Whether each transfer is followed by a picture of when its parts happened.
    var showsTimeline = false
    /// What users are told of the command line that is carried out all the same.
    var warnings: [String] = []
    var showsVersion = false
    var showsHelp = false

    /// How a transfer shows how far it has come: bars of several would be drawn over one another.
    var shownProgress: Progress {
        if isSilent { return .none }
        return isParallel && (progress == .auto || progress == .bar) ? .plain : progress
    }

    /// Whether errors are told.
    var tellsErrors: Bool { !isSilent || showsErrors }
}
