import ArgumentParser
import FoundationEssentials
import Martlet
import Synchronization

/// `martlet cache`: inspects the directory of a cache.
struct CacheCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cache", abstract: "Inspect, verify or clear the directory of a cache",
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

/// The options of all commands about caches.
struct CacheOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The cache's folder.", valueName: "dir")) var cache: String

    @Flag(help: "Print JSON.") var json = false

    mutating func validate() throws {
        guard !cache.isEmpty else { throw ValidationError("option --cache: takes a folder") }
        guard !cache.utf8.contains(0) else { throw ValidationError("option --cache: a path holds no NUL") }
    }

    /// Opens the cache, or reports the reason that it cannot be opened.
    func open(_ notes: CacheWarnings = CacheWarnings()) async throws(ExitStatus) -> DiskCache {
        let directory = cache
        do throws(CacheOpeningError) {
            return try await Console.attempt { () throws(CacheOpeningError) in
                try DiskCache(existing: directory, onEvent: notes.take)
            }
        } catch {
            await Console.report("\(error)")
            throw .usage
        }
    }

    /// Prints a text, or an object as a line of JSON.
    func print(_ text: String, json value: some JSONRepresentable) async throws(ExitStatus) {
        try await Console.print(json ? value.jsonLine + "\n" : text)
    }

    /// Reads from a cache, or reports the reason that it cannot be read.
    static func read<Value: Sendable>(
        _ body: @escaping @Sendable () throws(StorageError) -> Value
    ) async throws(ExitStatus) -> Value {
        do throws(StorageError) {
            return try await Console.attempt(body)
        } catch {
            await report([error])
            throw .readFailed
        }
    }

    static var now: WallTime {
        let seconds = Date().timeIntervalSince1970
        return WallTime(milliseconds: Int64(exactly: (seconds * 1000).rounded()) ?? 0)
    }

    static func report(_ errors: [StorageError]) async {
        for error in errors { await Console.report("\(error)") }
    }
}

/// `martlet cache stats`: counts entries and bytes.
struct CacheStatsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stats", abstract: "Count entries and bytes, fresh and stale ones.",
        discussion: """
            Bytes are allocated blocks, as a limit counts them. Fresh is what its own fields say: an application may \
            have rules of its own for responses that say nothing. Bodies are not read: see verify.
            """)

    @OptionGroup var options: CacheOptions

    mutating func run() async throws {
        let cache = try await options.open()
        let now = CacheOptions.now
        let survey = try await CacheOptions.read { () throws(StorageError) in
            var survey = CacheSummary(now: now)
            for name in try cache.entryNames() {
                if let entry = cache.look(at: name) { survey.add(entry) }
            }
            survey.occupied = try cache.occupiedByteCount()
            return survey
        }
        try await options.print(survey.table, json: survey.json)
        if survey.unreadable > 0 { throw ExitStatus.readFailed }
    }
}

/// `martlet cache verify`: reads all entries.
struct CacheVerifyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify", abstract: "Read every byte and compare the checksums.",
        discussion: """
            Entries that are damaged are named and removed, as they would be at the next use; the exit code is 100 \
            then. Files that are not the cache's are left alone.
            """)

    @OptionGroup var options: CacheOptions

    mutating func run() async throws {
        let notes = CacheWarnings()
        let cache = try await options.open(notes)
        let result = await Console.run { cache.verify() }
        let (unsorted, errors) = notes.all
        // The order does not depend on that of the file system.
        let damages = unsorted.sorted { $0.file < $1.file }
        let size = ProgressText.size(Double(result.byteCount))
        let text =
            damages.map { "\($0.text)\n" }.joined()
            + "\(result.whole) whole, \(size) of bodies; \(damages.count) damaged\n"
        let json: JSONMembers = [
            "whole": result.whole, "body_bytes": result.byteCount, "damaged": damages.count,
            "damages": damages,
        ]
        try await options.print(text, json: json)
        await CacheOptions.report(errors)
        if !damages.isEmpty { throw ExitStatus.checksum }
        if !errors.isEmpty { throw ExitStatus.readFailed }
    }
}

struct DamagedEntry: JSONRepresentable, Sendable {
    var file: String
    var fault: EntryFormatError
    var text: String { "damaged  \(file): \(TerminalText.escaped("\(fault)"))" }
    var json: JSONValue { ["file": .string(file), "damaged": .string("\(fault)")] }
}

/// The events of a cache during a command.
final class CacheWarnings: Sendable {
    /// Written by the thread that works on the cache, read by the command.
    private let state = Mutex((damages: [DamagedEntry](), errors: [StorageError]()))

    /// The damaged entries and the failures of the file system, in the order in which they were found.
    var all: (damages: [DamagedEntry], errors: [StorageError]) { state.withLock { $0 } }

    func take(_ event: DiskCacheEvent) {
        switch event {
        case .damaged(let file, let fault):
            state.withLock { $0.damages.append(DamagedEntry(file: file, fault: fault)) }
        case .unavailable(let error): state.withLock { $0.errors.append(error) }
        case .tooLarge, .noRoom, .recovered, .evicted, .indexed: break
        }
    }
}
