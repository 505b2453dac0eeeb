import ArgumentParser
import FoundationEssentials
import MartletCache
import MartletStorage

/// The options that all commands about caches have.
struct CacheOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The cache's folder.", valueName: "dir"))
    var cache: String

    @Flag(help: "Print JSON.")
    var json = false

    mutating func validate() throws {
        guard !cache.isEmpty else { throw ValidationError("option --cache: takes a folder") }
        guard !cache.utf8.contains(0) else { throw ValidationError("option --cache: a path holds no NUL") }
    }

    /// Opens the cache; says what keeps it from being opened.
    func open(_ notes: CacheNotes) async throws(ExitStatus) -> DiskCache {
        let directory = cache
        let result = await Console.run { () -> Result<DiskCache, CacheOpeningError> in
            do throws(CacheOpeningError) {
                return .success(try DiskCache(existing: directory, onEvent: notes.take))
            } catch {
                return .failure(error)
            }
        }
        switch result {
        case .success(let cache): return cache
        case .failure(let error):
            await Console.complain("martlet: \(error)\n")
            throw .usage
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
