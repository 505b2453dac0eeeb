import Martlet

/// A list of URLs: one a line, each followed by indented lines with its own options.
///
/// ```
/// # comments and empty lines mean nothing
/// https://example.com/disk.img
///   out=disk-1.img
///   checksum=sha256=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
///   header=X-Mirror: 2
/// ```
enum DownloadList {
    /// The entries, in order.
    /// - Throws: The error of the first invalid line, with its number.
    static func entries(
        of bytes: [UInt8], named name: String, disablesGlobbing: Bool = false
    ) throws(UsageError) -> [DownloadListEntry] {
        var entries: [DownloadListEntry] = []
        var lines = bytes.split(separator: 10, omittingEmptySubsequences: false)[...]
        if lines.last?.isEmpty == true { lines = lines.dropLast() }
        for (index, line) in lines.enumerated() {
            let place = "\(name == "-" ? "standard input" : name), line \(index + 1)"
            guard let text = String(validating: line.last == 13 ? line.dropLast() : line, as: UTF8.self)
            else { throw UsageError("\(place): is not UTF-8") }
            let content = HeaderLines.trimmed(text[...])
            guard let first = content.first, first != "#" else { continue }
            try check(content.utf8.allSatisfy(ByteClass.isFieldValue), "\(place): has a control character")
            if text.first == " " || text.first == "\t" {
                guard var entry = entries.popLast() else {
                    throw UsageError("\(place): no URL stands before it; URLs are not indented")
                }
                try add(content, to: &entry, place)
                entries.append(entry)
            } else {
                let url = try url(content, disablesGlobbing, place)
                entries.append(DownloadListEntry(place: place, url: url))
            }
        }
        return entries
    }

    private static func url(
        _ text: Substring, _ disablesGlobbing: Bool, _ place: String
    ) throws(UsageError) -> HTTPURL {
        try check(
            !text.contains(where: { $0 == " " || $0 == "\t" }), "\(place): a line has one URL",
            status: .malformedURL)
        do throws(UsageError) {
            let text = try CommandLineURL.completed(String(text), disablesGlobbing: disablesGlobbing)
            return try CommandLineURL.parsed(text)
        } catch { throw UsageError("\(place): \(error)", status: error.status) }
    }

    private static func add(
        _ content: Substring, to entry: inout DownloadListEntry, _ place: String
    ) throws(UsageError) {
        let parts = content.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = parts[0]
        try check(parts.count == 2, "\(place): “\(name)” has no =")
        let value = String(parts[1])
        try check(!value.isEmpty, "\(place): “\(name)=” has no value")
        switch name {
        case "out":
            try check(entry.output == nil, "\(place): a URL has one “out=”")
            try check(value != "-", "\(place): a download becomes a file")
            entry.output = value
        case "checksum":
            try check(entry.checksum == nil, "\(place): a URL has one “checksum=”")
            entry.checksum = try DownloadCommand.checksum(value, place)
        case "header": entry.headers.append((place, value))
        default: throw UsageError("\(place): “\(name)=” is none of out=, checksum= and header=")
        }
    }
}

/// A URL of a list with its options.
struct DownloadListEntry: Sendable {
    /// The file and the line, such as `list, line 3`, for messages.
    var place: String
    var url: HTTPURL
    /// `out=`: the file's name.
    var output: String?
    /// `checksum=`: the checksum of the file.
    var checksum: Checksum?
    /// `header=`: header lines of its requests, each with its file and line.
    var headers: [(place: String, line: String)] = []
}

/// The running downloads, which can be stopped together.
actor RunningDownloads {
    private enum Phase: Sendable { case open, stopping, stopped }

    private let starter: any DownloadBackend
    private let phase = CurrentValue(Phase.open)
    private var running: [Int: Download] = [:]

    /// A roster of the downloads that a starter begins.
    init(_ starter: any DownloadBackend) { self.starter = starter }

    /// Whether no more downloads may begin.
    nonisolated var isStopping: Bool { phase.value != .open }

    /// Adds a download, and stops it if all are being stopped.
    func add(_ number: Int, _ download: Download) async {
        running[number] = download
        if isStopping { await starter.stop([download]) }
    }

    func remove(_ number: Int) { running[number] = nil }

    /// Stops all downloads, and returns when they have stopped; no more may begin.
    func stop() async {
        guard !isStopping else { return await untilStopped() }
        phase.update { .stopping }
        await starter.stop(Array(running.values))
        phase.update { .stopped }
    }

    /// Waits until all downloads have stopped, or the task is cancelled.
    nonisolated func untilStopped() async { _ = await phase.next { $0 == .stopped } }
}
