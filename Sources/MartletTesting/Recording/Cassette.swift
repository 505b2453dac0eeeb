import HTTPTypes
import MartletContent
public import MartletCore
public import MartletDiagnostics
import MartletStorage
import MartletTransport
import MartletURL
public import SystemPackage

/// A file of recorded exchanges that replaces the network in a test.
///
/// ```swift
/// let cassette = try Cassette(file: "Fixtures/users.har", mode: .replayOrRecord)
/// let users: [User] = try await session.with(cassette).get(url).decode()
/// ```
///
/// The file is HAR 1.2, which the developer tools of browsers can open and export. It has credentials, cookies and the
/// secrets in ``CassetteOptions`` as `***`. A response is recorded when its body has been read to its end. Calls
/// that are cancelled or fail, and bodies that are not read to their end, are not recorded. Redirects, challenges and
/// other responses without a status of 2xx are always recorded. The file is replaced atomically before the caller sees
/// the end of the body, so that a crash loses only unfinished responses, and an error of the file is an error of the
/// call.
///
/// A request is answered with the first recorded response that matches and that this object has not used yet. Objects
/// for the same file are independent of each other; only one of them should record at a time. An object can be used by
/// concurrent calls: recorded entries are in the order in which their requests started.
public final class Cassette: HTTPMiddleware {
    /// The use of the file.
    public enum Mode: String, Hashable, Sendable, CaseIterable {
        /// All requests are sent and recorded. The first response replaces an existing file.
        case record
        /// No request is sent. A request without a recorded response throws ``CassetteError/unmatched(_:)``.
        case replay
        /// Requests without a recorded response are sent, and added to the file. This object does
        /// not replay what it has added, so each of several equal requests is sent and recorded.
        case replayOrRecord
    }

    private struct State {
        /// The numbers of the entries that were replayed.
        var used: Set<Int> = []
        /// The number of requests that started.
        var startCount = 0
        var file: CassetteFile
        /// The start numbers of the added entries, in the order of the file.
        var starts: [Int] = []
        /// The number of changes of the file.
        var version = 0
        /// The number of changes that are on disk.
        var savedVersion = 0
        var isSaving = false
    }

    /// A recorded entry that can be replayed.
    private struct Replayable {
        /// The number in the file.
        let index: Int
        let entry: CassetteEntry
        let key: CassetteKey
    }

    /// The path of the file.
    public let path: FilePath
    /// The use of the file.
    public let mode: Mode
    private let options: CassetteOptions
    private let mask: CassetteMask
    private let loadedCount: Int
    private let replayable: [Replayable]
    private let state: AwaitableState<State>

    /// Creates a cassette, and reads its file unless the mode is `.record`. This blocks the calling thread.
    /// - Parameters:
    ///   - path: The file, relative to the working directory, which is the package's directory in `swift test`. Its
    ///     directory is created when the first response is recorded.
    ///   - mode: The use of the file.
    ///   - options: The rule for matching, the secrets and the limits.
    /// - Throws: ``CassetteError``: `.fileFailed`, for a missing file only in the mode `.replay`; `.malformed`.
    public init(file path: some FilePathConvertible, mode: Mode, options: CassetteOptions = CassetteOptions())
        throws(CassetteError)
    {
        (self.path, self.mode, self.options) = (path.filePath, mode, options)
        let mask = CassetteMask(secrets: options.mask, jsonKeys: Set(options.secretJSONKeys.map { $0.lowercased() }))
        var file = CassetteFile()
        if mode != .record, let bytes = try Cassette.contents(of: self.path, mode, options.fileLimit.bytes) {
            file = try CassetteFile(parsing: bytes, path: self.path.string, bodyLimit: options.bodyLimit.bytes)
        }
        replayable = file.recordings.enumerated().compactMap { index, recording in
            recording.entry.map { entry in
                Replayable(index: index, entry: entry, key: options.matching.key(of: mask.masked(entry.request)))
            }
        }
        (self.mask, loadedCount) = (mask, file.recordings.count)
        state = AwaitableState(State(file: file))
    }

    private static func contents(of path: FilePath, _ mode: Mode, _ limit: Int) throws(CassetteError) -> [UInt8]? {
        do throws(StorageError) {
            return try FileReader(path: path.string).contents(limit: UInt64(limit))
        } catch {
            if error.isMissingFile, mode == .replayOrRecord { return nil }
            throw .fileFailed(error)
        }
    }

    /// The entries that can be replayed, and the responses that were recorded so far, in the order of the file.
    public var entries: [CassetteEntry] { state.read { $0.file.recordings.compactMap(\.entry) } }

    // MARK: Replaying

    /// Returns the recorded response to a request, or sends and records the request, as the mode requires.
    /// - Throws: ``CassetteError``; the errors of sending.
    public func handle(_ request: HTTPCall.Request, context: CallContext, next: HTTPNext) async throws
        -> HTTPCall.Response
    {
        guard let url = request.url else {
            throw HTTPError(.invalidURL, phase: .preparing, message: "a cassette needs a request with a valid URL")
        }
        var (request, headers) = (request, request.head.headerFields)
        if let type = request.body.contentType, headers[.contentType] == nil { headers[.contentType] = type }
        var seen = CassetteRequest(method: request.method, url: url, headers: headers, body: [])
        guard mode != .record else { return try await record(&request, seen, next) }
        if options.matching.needsBody {
            let isOnce = request.body.replay == .once
            seen.body = try await collect(request.body, of: seen)
            if isOnce {
                let bytes = seen.body
                // A trailer, such as a digest, is sent only after chunks.
                let collected: HTTPBody =
                    request.body.trailer == nil
                    ? .bytes(bytes)
                    : .stream {
                        AsyncStream<[UInt8]> { stream in
                            stream.yield(bytes)
                            stream.finish()
                        }
                    }
                request.body.storage = collected.storage
            }
        }
        let sought = mask.masked(seen)
        if let entry = take(sought) {
            var response = HTTPCall.Response(entry.response, body: entry.body)
            response.madeTrailers = entry.trailers
            return response
        }
        guard mode == .replayOrRecord else { throw CassetteError.unmatched(mismatch(sought)) }
        return try await record(&request, seen, next)
    }

    /// Returns the next entry for a request, and marks it as used.
    private func take(_ request: CassetteRequest) -> CassetteEntry? {
        let key = options.matching.key(of: request)
        let isMatch = options.matching.custom
        // The program's function is not called under the lock.
        let matches = replayable.filter { isMatch?($0.entry, request) ?? ($0.key == key) }
        return state.update { state in
            let next = matches.first { !state.used.contains($0.index) }
            if let next { state.used.insert(next.index) }
            return (next ?? (options.repeats == .last ? matches.last : nil))?.entry
        }
    }

    private func mismatch(_ request: CassetteRequest) -> CassetteMismatch {
        let rule = options.matching
        let key = rule.key(of: request)
        let ranked = replayable.map { candidate in
            let (texts, weight) = rule.differences(candidate.key, key)
            let isMatch = rule.custom?(candidate.entry, request) ?? texts.isEmpty
            let rejected = isMatch ? [] : ["rejected by the custom rule"]
            return (candidate, texts: rule.custom == nil ? texts : isMatch ? [] : texts + rejected, weight)
        }.sorted { ($0.texts.isEmpty ? -1 : $0.2, $0.0.index) < ($1.texts.isEmpty ? -1 : $1.2, $1.0.index) }
        return CassetteMismatch(
            path: path.string, request: request,
            candidates: ranked.prefix(3).map { candidate, texts, _ in
                .init(index: candidate.index, request: mask.masked(candidate.entry.request), differences: texts)
            })
    }

    // MARK: Recording

    private func record(_ request: inout HTTPCall.Request, _ seen: CassetteRequest, _ next: HTTPNext) async throws
        -> HTTPCall.Response
    {
        let start = state.update { state in
            state.startCount += 1
            return state.startCount
        }
        var seen = seen
        var sent: CopyingSource?
        if request.body.replay == .once {
            let (source, length) = try await request.body.open()
            let copied = CopyingSource(source, limit: options.bodyLimit.bytes)
            request.body.storage = .once(length: length, SingleUseSource(copied))
            sent = copied
        } else if mode == .record || !options.matching.needsBody {
            // Otherwise the body was collected to be matched.
            seen.body = try await collect(request.body, of: seen)
        }
        var response = try await next(request)
        guard let body = response.body else { return response }
        let limit = tooLarge("response", of: seen)
        let finish = { @Sendable [self, seen, sent] (bytes: [UInt8]) in
            var seen = seen
            if let sent {
                guard let copy = sent.copy.read({ $0 }) else { throw tooLarge("request", of: seen) }
                seen.body = copy
            }
            let exchange = body.exchange(with: bytes, isCollected: true)
            let recording = try CassetteFile.recording(
                mask.masked(seen), exchange, trailers: body.trailers, mask, path: path.string,
                bodyLimit: options.bodyLimit.bytes)
            try await add(recording, start)
        }
        let copied = CopiedResponseBody(body: body, limit: (options.bodyLimit.bytes, limit), finish: finish)
        if body.expectedContentLength == 0 || response.status.kind != .successful {
            // The session may never read these bodies, for example that of a redirect.
            var bytes: [UInt8] = []
            for try await piece in copied { bytes += piece }
            response.setBody(bytes)
        } else {
            let isCoded = response.headers.contains(.contentEncoding)
            response.setBody(copied, length: isCoded ? nil : body.expectedContentLength)
        }
        return response
    }

    private func tooLarge(_ message: String, of request: CassetteRequest) -> CassetteError {
        .tooLarge(
            "\(mask.masked(request).name): the body of the \(message) is larger than the limit of "
                + "\(options.bodyLimit) for recorded bodies; raise CassetteOptions.bodyLimit")
    }

    private func collect(_ body: HTTPBody, of request: CassetteRequest) async throws -> [UInt8] {
        let source = try await body.open().source
        var bytes: [UInt8] = []
        while let piece = try await source.next() {
            guard piece.count <= options.bodyLimit.bytes - bytes.count else { throw tooLarge("request", of: request) }
            bytes += piece
        }
        return bytes
    }

    private func add(_ recording: CassetteFile.Recording, _ start: Int) async throws {
        let limit = options.fileLimit.bytes
        let version = state.update { state -> Int? in
            guard recording.json.count <= limit - state.file.byteCount else { return nil }
            let place = state.starts.firstIndex { $0 > start } ?? state.starts.count
            state.starts.insert(start, at: place)
            state.file.insert(recording, at: loadedCount + place)
            state.version += 1
            return state.version
        }
        guard let version else {
            throw CassetteError.tooLarge(
                "\(path): the cassette would be larger than the limit of \(options.fileLimit) for files; "
                    + "raise CassetteOptions.fileLimit, or use several cassettes")
        }
        try await save(upTo: version)
    }

    /// Waits until all recorded responses are in the file, and repeats a write that failed. The file is also written
    /// after each response; without new responses nothing is written.
    /// - Throws: ``CassetteError/fileFailed(_:)``; `CancellationError`.
    public func save() async throws { try await save(upTo: state.read { $0.version }) }

    /// Writes the file, unless a running write has it already. Changes during a write share the next one.
    private func save(upTo wanted: Int) async throws {
        while state.read({ $0.savedVersion < wanted }) {
            let work = state.update { state -> (version: Int, file: CassetteFile)? in
                guard !state.isSaving else { return nil }
                state.isSaving = true
                return (state.version, state.file)
            }
            guard let work else {
                _ = try await state.wait(within: .seconds(60)) { !$0.isSaving }
                continue
            }
            let path = path
            let result = await BlockingThreadPool.shared.run {
                Result { () throws(StorageError) in try Cassette.write(work.file, to: path) }
            }
            state.update { state in
                state.isSaving = false
                if case .success = result { state.savedVersion = max(state.savedVersion, work.version) }
            }
            if case .failure(let error) = result { throw CassetteError.fileFailed(error) }
        }
    }

    private static func write(_ file: CassetteFile, to path: FilePath) throws(StorageError) {
        let directory = path.removingLastComponent().string
        if !directory.isEmpty { try LinuxFileSystem().makeDirectory(directory, withParents: true) }
        let writer = try AtomicFileWriter(path: path.string, collision: .replace)
        try writer.write(file.bytes())
        try writer.publish(collision: .replace)
    }
}

/// The options of a cassette.
public struct CassetteOptions: Sendable {
    /// The response to a request after all matching entries were used.
    public enum Repeats: String, Hashable, Sendable {
        /// The last matching entry again.
        case last
        /// None: the request is recorded in the mode `.replayOrRecord`, and otherwise an error.
        case never
    }

    /// The rule by which the recorded response to a request is found.
    public var matching = CassetteMatching()
    /// The response after all matching entries were used; `.last` by default.
    public var repeats = Repeats.last
    /// The masked fields, and the masked items of queries and forms. By default the fields with credentials and
    /// cookies, and the items of OAuth with secrets. Requests that differ only in masked values match the same entries.
    public var mask = SecretRedaction(
        fields: SecretRedaction.standard.fields,
        queryItems: [
            "access_token", "refresh_token", "id_token", "client_secret", "client_assertion", "password",
        ])
    /// The names of members of JSON bodies whose values are masked, at any depth and in any case; by default those of
    /// OAuth with secrets.
    public var secretJSONKeys: Set<String> = ["access_token", "refresh_token", "id_token", "client_secret"]
    /// The maximum size of the body of a request or a response, decoded; 16 MiB by default. Above it, the call that
    /// records it throws ``CassetteError/tooLarge(_:)``.
    public var bodyLimit = ByteCount.mebibytes(16)
    /// The maximum size of the file; 256 MiB by default. The entries of the file are in memory.
    public var fileLimit = ByteCount.mebibytes(256)

    /// Creates the default options.
    public init() {}
}

extension SessionConfiguration {
    /// Makes sessions of this configuration use a cassette in place of the network, below all middleware that was added
    /// before. Redirects, cookies, credentials and the cache work as without it.
    public mutating func connect(to cassette: Cassette) { networkMiddleware.append(cassette) }
}

extension HTTPSession {
    /// Returns a view of this session that uses a cassette in place of the network, like `connect(to:)` of its
    /// configuration.
    public nonisolated func with(_ cassette: Cassette) -> HTTPSession { with { $0.connect(to: cassette) } }
}
