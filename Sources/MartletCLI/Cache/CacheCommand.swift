import ArgumentParser
import FoundationEssentials
import Martlet
import MartletCache
import MartletStorage
import Synchronization

/// `martlet cache`: looks into the folder of a cache.
struct CacheCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cache", abstract: "Look into the folder of a cache, check it, or clear it.",
        discussion: """
            Other programs may use the cache meanwhile. To look at it makes no folder, counts as no use of an entry, and \
            gives nothing up for room.

            EXIT CODES:
            0: done
            2: the folder is missing, is no cache, belongs to another user, or is open to others
            23: what is to be printed cannot be written, or what is to be removed cannot be removed
            26: something there could not be read
            100: verify found entries that are damaged
            """,
        subcommands: [
            CacheStatsCommand.self, CacheListCommand.self, CacheVerifyCommand.self, CacheClearCommand.self,
        ])
}

/// The options that all commands about caches have.
struct CacheOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The cache's folder.", valueName: "dir")) var cache: String

    @Flag(help: "Print JSON.") var json = false

    mutating func validate() throws {
        guard !cache.isEmpty else { throw ValidationError("option --cache: takes a folder") }
        guard !cache.utf8.contains(0) else { throw ValidationError("option --cache: a path holds no NUL") }
    }

    /// Opens the cache; says what keeps it from being opened.
    func open(_ notes: CacheNotes) async throws(ExitStatus) -> DiskCache {
        let directory = cache
        do throws(CacheOpeningError) {
            return try await Console.attempt { () throws(CacheOpeningError) in
                try DiskCache(existing: directory, onEvent: notes.take)
            }
        } catch {
            await Console.complain("martlet: \(error)\n")
            throw .usage
        }
    }

    /// Reads from a cache; says what keeps it from being read.
    static func read<Value: Sendable>(
        _ body: @escaping @Sendable () throws(StorageError) -> Value
    ) async throws(ExitStatus) -> Value {
        do throws(StorageError) {
            return try await Console.attempt(body)
        } catch {
            _ = await complain([error])
            throw .readFailed
        }
    }

    /// The present.
    static var now: WallTime {
        let seconds = Date().timeIntervalSince1970
        return WallTime(milliseconds: Int64(exactly: (seconds * 1000).rounded()) ?? 0)
    }

    /// Says what the file system kept from being done.
    /// - Returns: whether there was anything to say.
    static func complain(_ errors: [StorageError]) async -> Bool {
        for error in errors { await Console.complain("martlet: \(error)\n") }
        return !errors.isEmpty
    }
}

/// `martlet cache stats`: how much there is, and how fresh.
struct CacheStatsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stats", abstract: "Count entries and bytes, fresh and stale ones.",
        discussion: """
            Bytes are allocated blocks, as a limit counts them. Fresh is what its own fields say: an application may \
            have rules of its own for responses that say nothing. Bodies are not read: see verify.
            """)

    @ArgumentParser.OptionGroup var options: CacheOptions

    mutating func run() async throws {
        let cache = try await options.open(CacheNotes())
        let now = CacheOptions.now
        let survey = try await CacheOptions.read { () throws(StorageError) in
            var survey = CacheSurvey(now: now)
            for name in try cache.entryNames() {
                if let sight = cache.look(at: name) { survey.add(sight) }
            }
            survey.occupied = try cache.occupiedByteCount()
            return survey
        }
        try await Console.print(options.json ? JSONLine.text(survey.json) + "\n" : survey.table)
        if survey.unreadable > 0 { throw ExitStatus.readFailed }
    }
}

/// `martlet cache verify`: reads all of it.
struct CacheVerifyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify", abstract: "Read every byte and compare the checksums.",
        discussion: """
            Entries that are damaged are named and removed, as they would be at the next use; the exit code is 100 \
            then. Files that are not the cache's are left alone.
            """)

    @ArgumentParser.OptionGroup var options: CacheOptions

    mutating func run() async throws {
        let notes = CacheNotes()
        let cache = try await options.open(notes)
        let result = await Console.run { cache.verify() }
        // In an order that does not depend on the file system's.
        let damages = notes.damages.sorted { $0.file < $1.file }
        try await Console.print(options.json ? json(result, damages) : text(result, damages))
        let hasFailed = await CacheOptions.complain(notes.errors)
        if !damages.isEmpty { throw ExitStatus.checksum }
        if hasFailed { throw ExitStatus.readFailed }
    }

    private func text(
        _ result: (whole: Int, byteCount: UInt64, damaged: Int),
        _ damages: [(file: String, fault: EntryFault)]
    ) -> String {
        var text = damages.map { "damaged  \($0.file): \(TerminalText.escaped("\($0.fault)"))\n" }.joined()
        let size = ProgressText.size(Double(result.byteCount))
        text += "\(result.whole) whole, \(size) of bodies; \(damages.count) damaged\n"
        return text
    }

    private func json(
        _ result: (whole: Int, byteCount: UInt64, damaged: Int),
        _ damages: [(file: String, fault: EntryFault)]
    ) -> String {
        let list = damages.map { damage in
            JSONValue.members([("file", .string(damage.file)), ("damaged", .string("\(damage.fault)"))])
        }
        return JSONLine.text(
            .members([
                ("whole", .number(result.whole)), ("body_bytes", .number(result.byteCount)),
                ("damaged", .number(damages.count)), ("damages", .array(list)),
            ])) + "\n"
    }
}

/// What a cache has said while a command worked on it.
final class CacheNotes: Sendable {
    private struct State {
        var damages: [(file: String, fault: EntryFault)] = []
        var errors: [StorageError] = []
    }

    /// Written by the thread that works on the cache, read by the command.
    private let state = Mutex(State())

    /// Entries that were found damaged, in the order in which they were.
    var damages: [(file: String, fault: EntryFault)] { state.withLock { $0.damages } }
    /// What the file system refused.
    var errors: [StorageError] { state.withLock { $0.errors } }

    /// Notes an event.
    func take(_ event: DiskCacheEvent) {
        switch event {
        case .damaged(let file, let fault): state.withLock { $0.damages.append((file, fault)) }
        case .unavailable(let error): state.withLock { $0.errors.append(error) }
        case .tooLarge, .noRoom, .recovered, .evicted, .indexed: break
        }
    }
}
