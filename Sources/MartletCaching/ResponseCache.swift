public import MartletConditions
public import MartletCore
import FoundationEssentials
public import MartletCache
import Synchronization

/// A private cache of responses (RFC 9111), in memory and on disk. Each tier is bounded, and works without the other.
///
/// Any number of sessions may use it as their ``SessionConfiguration/cache``, and processes may share a directory.
/// An error of the disk never fails a request: it is a miss, and an event reports it.
///
/// ```swift
/// configuration.cache = try .at(
///     "/var/cache/app", memory: .mebibytes(32), disk: .gibibytes(1))
/// ```
///
/// Bodies are stored as their reader receives them, and are held in memory as a whole only if they are small. A body
/// larger than an eighth of the disk's limit (of the memory's, without a disk) is delivered and not stored.
public final class ResponseCache: Sendable {
    /// The options of a cache. By default it follows RFC 9111.
    public struct Options: Sendable {
        /// The order of eviction; the least recently used first by default.
        public var eviction = Eviction.leastRecentlyUsed
        /// The time for which a stale response may replace an error if neither it nor the request has the directive
        /// `stale-if-error` (RFC 5861 §4), in whole seconds. With `nil` (the default), only that directive allows it.
        public var staleIfError: Duration?
        /// Lifetimes of responses that specify none; by default they are estimated as in RFC 9111 §4.2.2.
        public var defaultFreshness = DefaultFreshness.none
        /// The source of memory pressure, by default that of the machine; `nil` for none. At a warning, half of the
        /// responses in memory are evicted, at the critical level all. Those not on disk are written there first.
        public var memoryPressure: MemoryPressureSource? = .system

        /// Creates the default options.
        public init() {}
    }

    /// The order of eviction from a full cache.
    public enum Eviction: String, Hashable, Sendable, CaseIterable {
        /// The least recently used first.
        case leastRecentlyUsed
        /// The first entry not used since the last pass (SIEVE, NSDI 2024), for many responses that are used only once.
        case sieve

        fileprivate var order: EvictionOrder { self == .sieve ? .sieve : .leastRecentlyUsed }
    }

    /// The use of a cache in this process, and its content. Each completed request counts once, by its response.
    public struct Statistics: Hashable, Sendable {
        /// The number of requests that fresh stored responses served.
        public var hits: UInt64 = 0
        /// The number of requests that stale stored responses served, without waiting for the network.
        public var staleHits: UInt64 = 0
        /// The number of requests that stored responses served after a 304.
        public var validated: UInt64 = 0
        /// The number of requests that the network served.
        public var misses: UInt64 = 0
        /// The number of requests that stored responses served instead of errors.
        public var staleOnErrors: UInt64 = 0
        /// The number of requests that bypassed the cache.
        public var bypasses: UInt64 = 0
        /// The number of requests that the transfer of another request served.
        public var shared: UInt64 = 0
        /// The number of 504 responses, because only the cache was allowed to respond and had no response.
        public var unsatisfiable: UInt64 = 0
        /// The number of validations of stale responses after they were served.
        public var revalidations: UInt64 = 0
        /// The number of responses stored in memory or on disk.
        public var stores: UInt64 = 0
        /// The number of responses evicted from memory and from disk.
        public var evictions: UInt64 = 0
        /// The number of stored responses that were removed because they were out of date or damaged.
        public var removals: UInt64 = 0
        /// The number of body bytes delivered from the cache.
        public var bytesServed: UInt64 = 0
        /// The number of body bytes stored.
        public var bytesStored: UInt64 = 0
        /// The number of responses in memory.
        public var memoryEntries = 0
        /// The cost of the responses in memory, in bytes.
        public var memoryBytes = 0
        /// The number of known responses on disk: all once the index is complete.
        public var diskEntries = 0
        /// The size on disk when it was last determined, in bytes.
        public var diskBytes: UInt64 = 0

        /// Creates statistics of zeros.
        public init() {}
    }

    package let store: ResponseStore
    /// Whether it stores nothing, and is only used to share transfers.
    let isTransient: Bool
    let policy: MartletCache.CachePolicy
    /// The directory; `nil` for a cache in memory only.
    public let directory: FilePath?
    /// The counters, updated by all users of the cache.
    private let counts = Mutex(Statistics())
    /// The bodies whose responses are being validated in the background.
    private let validating = Mutex<Set<UInt64>>([])
    private let emitter: CacheEventEmitter
    private let work: Task<Void, Never>?

    /// Creates a cache in a directory, which is created if it is missing, with a tier in memory.
    ///
    /// The cache serves responses immediately: the index of a large directory is read in the background.
    /// - Parameters:
    ///   - path: The directory: accessible only by the user (mode 0700), and new, empty, or that of a cache. Files that
    ///     other programs add later are ignored.
    ///   - memory: The limit of the tier in memory, 32 MiB by default; 0 for none.
    ///   - disk: The maximum size on disk, in allocated blocks; 256 MiB by default. It is never exceeded if only one
    ///     process uses the directory. With several, each body that is being received may exceed it by 1 MiB (on tmpfs
    ///     by its length).
    /// - Throws: ``CacheDirectoryError`` if others own or can access the directory, or it has files of another program.
    public static func at(
        _ path: some FilePathConvertible, memory: ByteCount = .mebibytes(32), disk: ByteCount = .mebibytes(256),
        options: Options = Options()
    ) throws(CacheDirectoryError) -> ResponseCache {
        try at(path.filePath, memory: memory, disk: disk, options: options, files: LinuxFileSystem())
    }

    package static func at(
        _ path: FilePath, memory: ByteCount, disk: ByteCount, options: Options, files: any FileSystem
    ) throws(CacheDirectoryError) -> ResponseCache {
        let emitter = CacheEventEmitter()
        let tier = try DiskCache(
            directory: path.string, limit: UInt64(disk.bytes), order: options.eviction.order, files: files
        ) { emitter.emit(CacheEvent($0)) }
        return ResponseCache(memory: memory, disk: tier, directory: path, options: options, emitter: emitter)
    }

    /// Creates a cache in memory only, of 32 MiB by default.
    public static func memoryOnly(_ limit: ByteCount = .mebibytes(32), options: Options = Options()) -> ResponseCache {
        ResponseCache(memory: limit, disk: nil, directory: nil, options: options, emitter: CacheEventEmitter())
    }

    /// Returns a cache that stores nothing, for the transfers that requests of a session without a cache share.
    static func transient() -> ResponseCache {
        var options = Options()
        options.memoryPressure = nil
        return ResponseCache(
            memory: 0, disk: nil, directory: nil, options: options, emitter: CacheEventEmitter(), isTransient: true)
    }

    private init(
        memory: ByteCount, disk: DiskCache?, directory: FilePath?, options: Options, emitter: CacheEventEmitter,
        isTransient: Bool = false
    ) {
        (self.emitter, self.isTransient, self.directory) = (emitter, isTransient, directory)
        let store = ResponseStore(memoryLimit: memory.bytes, disk: disk, order: options.eviction.order)
        self.store = store
        policy = MartletCache.CachePolicy(
            defaults: options.defaultFreshness, staleIfError: options.staleIfError?.wholeSeconds)
        if let disk { BlockingThreadPool.shared.submit { disk.load() } }
        work = options.memoryPressure.map { source in
            Task { [weak store] in
                for await level in source where level > .normal {
                    guard let store else { return }
                    let target = level == .critical ? 0 : store.statistics.memory.byteCount / 2
                    await BlockingThreadPool.shared.run { store.trim(to: target) }
                }
            }
        }
    }

    deinit {
        work?.cancel()
        emitter.end()
        // Writes the responses that are only in memory, and the index, to disk for the next process.
        let store = store
        BlockingThreadPool.shared.submit { store.flush() }
    }

    // MARK: Public functions

    /// The events of the cache, as an `AsyncSequence`.
    public var events: CacheEvents { emitter.subscribe() }

    /// The use of the cache so far, and its content.
    public var statistics: Statistics {
        var statistics = counts.withLock { $0 }
        let tiers = store.statistics
        statistics.memoryEntries = tiers.memory.entryCount
        statistics.memoryBytes = tiers.memory.byteCount
        statistics.evictions = UInt64(tiers.memory.evictions)
        guard let disk = tiers.disk else { return statistics }
        statistics.diskEntries = disk.entryCount
        statistics.diskBytes = disk.byteCount
        statistics.evictions += UInt64(disk.evictions)
        statistics.removals += UInt64(disk.damaged)
        return statistics
    }

    /// Removes all stored responses of a URL, in all variants; one that is being received is not stored, either.
    /// - Parameter partition: The partition to remove from; responses without a partition are removed, too. With `nil`
    ///   (the default) those of all partitions and servers are removed, which reads the head of each entry on disk.
    public func remove(_ url: HTTPURL, partition: String? = nil) async {
        let url = url.absoluteForm
        await run { store in
            if let partition {
                store.invalidate(CacheKey(url: url, partition: partition))
            } else {
                store.removeAll(of: url)
            }
        }
    }

    /// Removes all stored responses.
    public func removeAll() async { await run { $0.removeAll() } }

    /// Evicts responses from memory down to a limit, after writing them to disk.
    public func trimMemory(to limit: ByteCount = 0) async { await run { $0.trim(to: limit.bytes) } }

    /// Writes the responses that are only in memory, and the order of their last use, to disk, if there is one.
    public func flush() async { await run { $0.flush() } }

    private func run(_ body: @escaping @Sendable (ResponseStore) -> Void) async {
        let store = store
        await BlockingThreadPool.shared.run { body(store) }
    }

    // MARK: Functions for requests

    /// Returns the rule that decides about the response of the network.
    func decider(_ request: CacheRequest, after decision: CacheDecision, _ found: [StoredResponse]) -> CacheUpdateRule {
        CacheUpdateRule(request, after: decision, variants: found.map(\.variant), policy: policy)
    }

    /// Applies a decision to the stored responses. It does not wait for a directory that another process blocks.
    /// - Parameters:
    ///   - found: The stored responses of the decision, found in `epoch`.
    ///   - seen: The epoch of changes when the request was sent.
    /// - Returns: The responses whose new heads were stored, by index.
    func carryOut(
        _ decided: ResponseDecision, for request: CacheRequest, _ found: [StoredResponse],
        _ epoch: InvalidationLog.Epoch, since seen: InvalidationLog.Epoch, on loop: EventLoop,
        until end: MonotonicTime = .distantFuture
    ) async -> [Int: StoredResponse] {
        var hasMore = false
        if case .reject = decided.storage, decided.isSuperseding, !isTransient {
            store.supersede(request.key)
            hasMore = store.hasChanged(request.key.url, since: seen)
        }
        guard !decided.freshened.isEmpty || !decided.removed.isEmpty || hasMore else { return [:] }
        let stored = await StoreWork.run(in: store, on: loop, until: end) { [hasMore] () -> [Int: StoredResponse] in
            var stored: [Int: StoredResponse] = [:]
            for head in decided.freshened {
                stored[head.variant] = self.store.freshen(found[head.variant], to: head.head, epoch: epoch)
            }
            self.removeNow(decided.removed.map { found[$0] })
            // Others may have been stored while the request was running.
            if hasMore { self.removeNow(self.matches(for: request, besides: found)) }
            return stored
        }
        return stored ?? [:]
    }

    /// Returns the stored responses that match a request, without those that were found before; it blocks on files.
    private func matches(for request: CacheRequest, besides found: [StoredResponse]) -> [StoredResponse] {
        let known = Set(found.map(\.representation))
        let stored = store.all(request.key)
        return VariantRule.matching(request, stored.map(\.variant)).map { stored[$0] }.filter {
            !known.contains($0.representation)
        }
    }

    /// Begins a validation in the background; false if one of the same response is running.
    func beginValidation(of response: StoredResponse) -> Bool {
        validating.withLock { $0.insert(response.representation).inserted }
    }

    func endValidation(of response: StoredResponse) {
        _ = validating.withLock { $0.remove(response.representation) }
    }

    /// Removes responses that are out of date.
    func remove(_ responses: [StoredResponse], on loop: EventLoop) async {
        guard !responses.isEmpty else { return }
        _ = await StoreWork.run(in: store, on: loop) { self.removeNow(responses) }
    }

    /// Removes responses that are out of date; it blocks on files.
    func removeNow(_ responses: [StoredResponse]) {
        for response in responses { store.remove(response) }
        if !responses.isEmpty { count { $0.removals &+= UInt64(responses.count) } }
    }

    func count(_ change: (inout Statistics) -> Void) { counts.withLock { change(&$0) } }

    /// Counts a request by the kind of its response, and the bytes of a body that the cache delivered.
    func count(_ figure: WritableKeyPath<Statistics, UInt64>, served byteCount: UInt64 = 0) {
        count { counts in
            counts[keyPath: figure] &+= 1
            counts.bytesServed &+= byteCount
        }
    }

    /// Adds a closure to call with each removed body, until it returns false. It must not block or call the cache.
    func onBodyRemoved(_ listener: @escaping @Sendable (UInt64) -> Bool) {
        store.onRepresentationRemoved { _, representation in listener(representation) }
    }

    func emit(_ event: CacheEvent) { emitter.emit(event) }

    /// Computes a digest of a secret for the disk.
    static func keyedDigest(_ secret: String) -> String {
        // The prefix distinguishes it from digests for other purposes.
        let digest = try? MessageDigest.digest(.sha256, of: "martlet cache: \(secret)".utf8)
        // Without SHA-256 no digest matches a stored one, which is safe.
        guard let digest else { return String(UInt64.random(in: 0 ... .max), radix: 16) }
        return String(decoding: MessageDigest.hexadecimal(digest.prefix(16)), as: UTF8.self)
    }
}

extension SessionConfiguration {
    /// Returns the socket, host, port or addresses that the configuration connects to instead of those of the URL;
    /// `nil` without an override. Addresses count even if a proxy resolves the names; that only costs a request.
    func overriddenTarget(of url: HTTPURL) -> String? {
        // A connector ignores these settings.
        guard connector == nil else { return nil }
        if let unixSocketPath { return "unix " + unixSocketPath }
        guard !connectOverrides.isEmpty || !resolveOverrides.isEmpty else { return nil }
        let dial = DialSettings(overrides: resolveOverrides, redirections: connectOverrides)
        let (host, port) = dial.redirected(host: url.host, port: url.port)
        let given = dial.overriddenAddresses(host: host, port: port)
        guard given != nil || host != url.host || port != url.port else { return nil }
        return (["\(host) \(port)"] + (given ?? []).map(\.description)).joined(separator: " ")
    }
}

/// A wall clock that is never adjusted: it starts with the machine's time, and advances as time passes.
///
/// The age of a response that this process stored is right even if the machine's clock is changed. Other processes
/// compare the times with their own clocks, and validate responses from their future.
struct MonotonicWallClock: Sendable {
    /// The machine's time at the start.
    let beginning: WallTime
    /// The same instant, by a clock that also advances while the computer is suspended.
    let instant: MonotonicTime

    /// Returns the time at an instant; an instant before the start counts as the start.
    func time(at now: MonotonicTime) -> WallTime {
        let passed = now > instant ? (now.nanoseconds - instant.nanoseconds) / 1_000_000 : 0
        return WallTime(milliseconds: beginning.milliseconds.clampedSum(Int64(passed)))
    }

    /// The clock of this process, which starts when it is first used.
    static let ofProcess = MonotonicWallClock(
        beginning: WallTime(milliseconds: Int64(Date().timeIntervalSince1970 * 1000)), instant: .sinceBoot())
}

extension WallTime {
    /// The current time, by the clock of the process's caches (``MonotonicWallClock``).
    package static var now: WallTime { MonotonicWallClock.ofProcess.time(at: .sinceBoot()) }
}
