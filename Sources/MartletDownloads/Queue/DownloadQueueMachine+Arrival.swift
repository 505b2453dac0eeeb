extension DownloadQueueMachine {
    /// A download that comes: new, or one that an earlier process left.
    package struct Arrival: Hashable, Sendable {
        /// Its number.
        package var id: DownloadID
        /// By what it is counted.
        package var host: String
        /// How urgent it is.
        package var priority: DownloadPriority
        /// What it was doing; whatever ran waits.
        package var phase: Phase

        /// An arrival.
        package init(id: DownloadID, host: String, priority: DownloadPriority, phase: Phase = .waiting) {
            self.id = id
            self.host = host
            self.priority = priority
            self.phase = phase
        }
    }
}
