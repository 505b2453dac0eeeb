import FoundationEssentials
import Martlet
import SystemPackage

/// The caches that a command line names: one for each folder, whichever groups use it.
struct CachePlan: Sendable {
    /// How long what is served stale is validated behind it before the program ends all the same.
    private static let validationLimit = Duration.seconds(10)

    private var caches: [FilePath: ResponseCache] = [:]

    /// Opens the caches, once all groups are known to make sense. Nothing is sent before.
    /// - Throws: A ``UsageError`` that names the option.
    init(_ groups: [OptionGroup], _ global: GlobalOptions) async throws(UsageError) {
        var limits: [FilePath: Int?] = [:]
        for group in groups {
            guard let folder = try CachePlan.folder(of: group.transfer) else { continue }
            let limit = group.transfer.staleIfError
            if let limit, let other = limits[folder] ?? nil, other != limit {
                throw UsageError(
                    "option --stale-if-error: it is a matter of the folder “\(folder)”, which has \(other) already"
                )
            }
            limits[folder] = .some(limit ?? limits[folder] ?? nil)
        }
        for (folder, limit) in limits {
            let (cache, isThere) = try await CachePlan.open(folder, staleIfError: limit)
            caches[folder] = cache
            if !isThere, global.tellsErrors {
                await Console.complain(
                    "martlet: option --cache: “\(folder)” cannot be made; nothing is stored\n")
            }
        }
    }

    /// The folder that a group names, after a look at the options that go with it.
    private static func folder(of options: TransferOptions) throws(UsageError) -> FilePath? {
        guard let name = options.cacheFolder else {
            let reason = "needs --cache DIR: there is nothing else that could answer"
            if options.isOffline { throw UsageError("option --offline: \(reason)") }
            if options.staleIfError != nil { throw UsageError("option --stale-if-error: \(reason)") }
            return nil
        }
        if options.isOffline, options.isRaw {
            throw UsageError("option --offline: cannot be used with --raw, which goes past the cache")
        }
        return FilePath(name).lexicallyNormalized()
    }

    /// Opens a cache, on a thread that may wait for the disk.
    /// - Parameter staleIfError: Seconds; `nil` for what the responses say.
    /// - Returns: The cache, and whether there is a folder; without one nothing is stored.
    /// - Throws: A ``UsageError``: the folder is another user's, open to others, or no folder.
    static func open(
        _ folder: FilePath, staleIfError: Int? = nil
    ) async throws(UsageError) -> (cache: ResponseCache, isThere: Bool) {
        var options = ResponseCache.Options()
        // More than 2^31 seconds are for ever (RFC 9111 §1.2.2).
        options.staleIfError = staleIfError.map { .seconds(min($0, 1 << 31)) }
        let opening = options
        return try await Console.attempt { () throws(UsageError) in
            do throws(CacheDirectoryError) {
                let cache = try ResponseCache.at(folder, options: opening)
                var isFolder = false
                let isThere = FileManager.default.fileExists(atPath: folder.string, isDirectory: &isFolder)
                if !isThere || isFolder { return (cache, isThere) }
            } catch {
                throw UsageError("option --cache: \(error)")
            }
            throw UsageError("option --cache: “\(folder)” is no folder")
        }
    }

    /// Has the session of a group use the group's cache.
    func apply(_ options: TransferOptions, to configuration: inout SessionConfiguration) {
        guard let name = options.cacheFolder else { return }
        configuration.cache = caches[FilePath(name).lexicallyNormalized()]
        if options.isOffline {
            configuration.cacheMode = .onlyIfCached
        } else if options.acceptsAnyCertificate {
            // What anybody may have sent must not answer those who ask whom it is from.
            configuration.cacheMode = .noStore
        }
    }

    /// Has all that was stored be on disk before the program ends.
    func end(_ session: HTTPSession?) async {
        for cache in caches.values { await CachePlan.end(session, cache) }
    }

    /// Waits a while for what is validated behind its reader's back, and for what is to be on disk.
    static func end(_ session: HTTPSession?, _ cache: ResponseCache) async {
        if let session, cache.statistics.revalidations > 0 {
            // Unstructured: the wait cannot be cancelled but by the end of what it waits for.
            let limit = Task {
                try await Task.sleep(for: validationLimit)
                await session.invalidateAndCancel()
            }
            await session.finishAndInvalidate()
            limit.cancel()
        }
        await cache.flush()
    }
}
