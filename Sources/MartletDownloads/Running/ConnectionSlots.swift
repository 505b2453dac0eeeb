package import MartletClient

/// How many connections downloads may have to one origin, all together.
package protocol ConnectionSlots: Sendable {
    /// Waits for a place for one connection to an origin, first come, first served, and takes it.
    /// - Throws: `CancellationError` when the task is cancelled, which leaves no place taken.
    func take(_ origin: HTTPURL.Origin) async throws(CancellationError)
    /// Takes a place where one is free and nobody waits for it.
    func takeAtOnce(_ origin: HTTPURL.Origin) -> Bool
    /// Gives a place back.
    func giveBack(_ origin: HTTPURL.Origin)
}
