import FoundationEssentials
import Glibc
import HTTPTypes
import Martlet
import MartletWire
import SystemPackage

/// The condition of `-z`: newer or older than an instant.
struct TimeCondition: Hashable, Sendable {
    /// How the response is compared with the date.
    enum Relation: Hashable, Sendable {
        /// It must be newer.
        case modifiedSince
        /// It must be older.
        case unmodifiedSince
        /// As curl's `=`: the date is sent as that of the request's own.
        case lastModified

        /// The field that asks for it.
        var field: HTTPField.Name {
            switch self {
            case .modifiedSince: .ifModifiedSince
            case .unmodifiedSince: .ifUnmodifiedSince
            case .lastModified: .lastModified
            }
        }
    }

    let relation: Relation
    let date: HTTPDate

    /// Reads `DATE`, `-DATE`, or the name of a file whose time counts, as curl does in this order; `nil` for what is
    /// neither.
    init?(_ text: String, now: HTTPDate) {
        var rest = text
        switch text.unicodeScalars.first {
        case "-": relation = .unmodifiedSince
        case "=": relation = .lastModified
        default: relation = .modifiedSince
        }
        if let mark = text.unicodeScalars.first, ["-", "=", "+"].contains(mark) {
            rest = text.rest(behind: text.startIndex)
        }
        guard let date = DateText.read(rest, now: now) ?? TimeCondition.time(ofFile: rest) else { return nil }
        self.date = date
    }

    /// The present.
    static var present: HTTPDate {
        HTTPDate(secondsSinceEpoch: Int64(Date().timeIntervalSince1970.rounded(.down)))
    }

    /// Whether a response is as it is wanted. One that does not tell its age is.
    func isMet(by head: ResponseHead) -> Bool {
        guard let text = head.fields.firstValue(of: "last-modified"), let modified = HTTPDate(text) else {
            return true
        }
        switch relation {
        case .modifiedSince: return modified > date
        case .unmodifiedSince: return modified < date
        case .lastModified: return true
        }
    }

    private static func time(ofFile name: String) -> HTTPDate? {
        var status = stat()
        guard !name.isEmpty, unsafe stat(name, &status) == 0 else { return nil }
        return HTTPDate(secondsSinceEpoch: Int64(status.st_mtim.tv_sec))
    }
}

/// The files of `--etag-compare` and `--etag-save`.
enum EntityTagFile {
    /// What `If-None-Match` says: what the file says without its line breaks, or an empty tag; `nil` where no file is named.
    ///
    /// A file that is not there yet is an empty one where its tag is to be saved.
    static func compared(_ options: TransferOptions) throws(UsageError) -> String? {
        guard let name = options.comparedTagFile else { return nil }
        let bytes: [UInt8]
        do throws(UsageError) {
            bytes = try InputFile.contents(of: name)
        } catch {
            guard options.savedTagFile != nil else { throw error }
            return "\"\""
        }
        let text = String(decoding: bytes.filter { ![0, 10, 13].contains($0) }, as: UTF8.self)
        return text.isEmpty ? "\"\"" : try HeaderLines.checked(text, "--etag-compare")
    }

    /// Makes sure that a tag can be saved, before anything is sent. What is in the file stays.
    static func prepare(_ options: TransferOptions) async throws(UsageError) {
        guard let name = options.savedTagFile, name != "-" else { return }
        do throws(OutputError) {
            try await write(nil, to: name, makesFolders: options.makesFolders)
        } catch {
            throw UsageError("option --etag-save: \(error)", status: .readFailed)
        }
    }

    /// Saves the tag of a response that has come whole, on a line of its own. One without a tag leaves an empty file; but a
    /// 304 without one leaves the tag that it was compared with.
    static func save(_ head: ResponseHead, _ options: TransferOptions) async throws(OutputError) {
        guard let name = options.savedTagFile, name != "-" else { return }
        let line = self.line(of: head)
        if line.isEmpty, head.status == 304 { return }
        try await write(line, to: name, makesFolders: options.makesFolders)
    }

    /// Writes the tag to standard output before the body, where it is to be there.
    static func show(_ head: ResponseHead, _ options: TransferOptions) async throws(OutputError) {
        guard options.savedTagFile == "-" else { return }
        try await Console.write(line(of: head))
    }

    /// The tag on a line of its own; nothing where there is none.
    private static func line(of head: ResponseHead) -> [UInt8] {
        head.fields.rawValues(of: "etag").first.map { Array($0) + [10] } ?? []
    }

    /// Writes a file anew; for `nil` it is only there afterwards.
    private static func write(
        _ bytes: [UInt8]?, to name: String, makesFolders: Bool
    ) async throws(OutputError) {
        try await Console.write(to: name) {
            let file = try FileDescriptor.output(
                name, bytes == nil ? [] : .truncate, makesFolders: makesFolders)
            try file.closeAfter { _ = try file.writeAll(bytes ?? []) }
        }
    }
}
