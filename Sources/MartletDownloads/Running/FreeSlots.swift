import MartletClient

/// As many connections as the session has.
struct FreeSlots: ConnectionSlots {
    func take(_ origin: HTTPURL.Origin) async throws(CancellationError) {}

    func takeAtOnce(_ origin: HTTPURL.Origin) -> Bool { true }

    func giveBack(_ origin: HTTPURL.Origin) {}
}
