import FoundationEssentials
import Martlet

/// The caches of a command line: one for each directory, whichever groups use it.
struct CachePlan: Sendable {
    /// The maximum time that the program waits for background validations before it ends.
    private static let validationLimit = Duration.seconds(10)

    private var caches: [FilePath: ResponseCache] = [:]

    /// Opens the caches after all groups were checked, before anything is sent.
    /// - Throws: A ``UsageError`` that names the option.
    init(_ groups: [TransferOptions]) async throws(UsageError) {
        var limits: [FilePath: Int?] = [:]
        for group in groups {
            guard let folder = try CachePlan.folder(of: group) else { continue }
            let limit = group.staleIfError
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
            if !isThere, groups.global.tellsErrors {
                await Console.report("option --cache: “\(folder)” cannot be made; nothing is stored")
            }
        }
    }

    /// The directory of a group, after a check of the options that need it.
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
    /// - Parameter staleIfError: Seconds; `nil` for the values of the responses.
    /// - Returns: The cache, and whether its directory exists; without one nothing is stored.
    /// - Throws: A ``UsageError``: the directory belongs to another user, is open to others, or is not a directory.
    static func open(
        _ folder: FilePath, staleIfError: Int? = nil
    ) async throws(UsageError) -> (cache: ResponseCache, isThere: Bool) {
        var options = ResponseCache.Options()
        // More than 2^31 seconds are forever (RFC 9111 §1.2.2).
        options.staleIfError = staleIfError.map { .seconds(min($0, 1 << 31)) }
        let opening = options
        return try await Console.attempt { () throws(UsageError) in
            do throws(CacheDirectoryError) {
                let cache = try ResponseCache.at(folder, options: opening)
                var isFolder = false
                let isThere = FileManager.default.fileExists(atPath: folder.string, isDirectory: &isFolder)
                if !isThere || isFolder { return (cache, isThere) }
            } catch { throw UsageError("option --cache: \(error)") }
            throw UsageError("option --cache: “\(folder)” is no folder")
        }
    }

    /// Gives the session of a group its cache.
    func apply(_ options: TransferOptions, to configuration: inout SessionConfiguration) {
        guard let name = options.cacheFolder else { return }
        configuration.cache = caches[FilePath(name).lexicallyNormalized()]
        if options.isOffline {
            configuration.cacheMode = .onlyIfCached
        } else if options.acceptsAnyCertificate {
            // Responses of unverified servers must not be served to requests that verify them.
            configuration.cacheMode = .noStore
        }
    }

    /// Writes all stored responses to the disk before the program ends.
    func end(_ session: HTTPSession?) async {
        for cache in caches.values { await CachePlan.end(session, cache) }
    }

    /// Waits a limited time for background validations, and for the disk.
    static func end(_ session: HTTPSession?, _ cache: ResponseCache) async {
        if let session, cache.statistics.revalidations > 0 {
            // Unstructured: the wait ends only with the session.
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
