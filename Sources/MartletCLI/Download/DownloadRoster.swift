import Martlet
import MartletTransport

/// The downloads that run, and the means to stop all of them at once.
actor DownloadRoster {
    private enum Phase: Sendable {
        case open, stopping, stopped
    }

    private let starter: any DownloadStarting
    private let phase = NewestValue(Phase.open)
    private var running: [Int: Download] = [:]

    /// A roster of downloads that a starter has begun.
    init(_ starter: any DownloadStarting) {
        self.starter = starter
    }

    /// Whether none is to begin any more.
    nonisolated var isStopping: Bool { phase.value != .open }

    /// Adds one that was begun; it is stopped at once where all are.
    func add(_ number: Int, _ download: Download) async {
        running[number] = download
        if isStopping { await starter.stop([download]) }
    }

    /// Forgets one that is over.
    func remove(_ number: Int) {
        running[number] = nil
    }

    /// Stops all, and lets none begin any more; returns when that is done.
    func stop() async {
        guard !isStopping else { return await untilStopped() }
        phase.update { .stopping }
        await starter.stop(Array(running.values))
        phase.update { .stopped }
    }

    /// Waits until all are stopped, or the task is cancelled.
    nonisolated func untilStopped() async {
        var seen: UInt64 = 0
        while let (version, value) = await phase.next(after: seen), value != .stopped { seen = version }
    }
}
