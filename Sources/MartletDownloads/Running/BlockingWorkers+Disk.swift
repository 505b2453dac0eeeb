import MartletTransport

extension BlockingWorkers {
    /// Threads that wait for the disk: syncs, and what follows them. Syncs that run at the same time cost a file system hardly
    /// more than one, and who looks up a name or writes a block is not to stand in line behind them.
    static let disk = BlockingWorkers(threadLimit: 8)
}
