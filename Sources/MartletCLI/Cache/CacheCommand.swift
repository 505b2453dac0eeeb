import ArgumentParser

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
