import MartletFeatureSettings
import MartletConditions
import MartletCache
import Testing

@testable import MartletAuthentication
@testable import MartletCaching
@testable import MartletCookies
@testable import MartletCore

extension DecodedResource {
    /// The resource that the tests request.
    fileprivate static let sample = DecodedResource(
        HTTPRequest(method: .get, scheme: "http", authority: "a", path: "/"), options: RequestOptions())
}

extension DecodingMachine {
    /// Starts or joins a request for the sample.
    fileprivate mutating func valueRequested() -> RequestAction {
        valueRequested(.sample, sharing: DecodedSharingKey(.sample, options: RequestOptions()))
    }
}

@Suite("Machine of shared decodings")
struct DecodingMachineTests {
    private typealias Machine = DecodingMachine<String>

    private let resource = DecodedResource.sample

    private var sharing: DecodedSharingKey? { DecodedSharingKey(resource, options: RequestOptions()) }

    private func machine() -> Machine { Machine(limit: 100, countLimit: 10) }

    /// Describes the result of a response as one word; for a cached value, returns the value.
    private func word(_ action: Machine.ResponseAction) -> String {
        switch action {
        case .taken(let value): value
        case .joined: "joined"
        case .decode: "decode"
        case .abandoned: "abandoned"
        }
    }

    @Test("Requests before the response share the request, and requests after it join the decoding")
    func joins() {
        var machine = machine()
        #expect(machine.valueRequested() == Machine.RequestAction(flight: 1, isNew: true))
        #expect(machine.valueRequested() == Machine.RequestAction(flight: 1, isNew: false))
        #expect(word(machine.responseReceived(1, representation: 7)) == "decode")
        #expect(machine.valueRequested() == Machine.RequestAction(flight: 2, isNew: true))
        #expect(word(machine.responseReceived(2, representation: 7)) == "joined")
        let done = machine.decoded(1, "a", cost: 1)
        #expect(done.flights == [1, 2] && done.dropped.isEmpty)
        #expect(machine.valueRequested() == Machine.RequestAction(flight: 3, isNew: true))
        #expect(word(machine.responseReceived(3, representation: 7)) == "a")
        #expect(machine.isIdle)
    }

    @Test("A different body of the same URL is decoded separately")
    func otherBody() {
        var machine = machine()
        _ = machine.valueRequested()
        #expect(word(machine.responseReceived(1, representation: 7)) == "decode")
        _ = machine.valueRequested()
        #expect(word(machine.responseReceived(2, representation: 8)) == "decode")
        #expect(machine.decoded(2, "b", cost: 1).flights == [2])
        #expect(machine.decoded(1, "a", cost: 1).flights == [1])
        _ = machine.valueRequested()
        #expect(word(machine.responseReceived(3, representation: 8)) == "b")
    }

    @Test("A response that is not stored serves only the requests that already wait for it")
    func notStored() {
        var machine = machine()
        _ = machine.valueRequested()
        #expect(word(machine.responseReceived(1, representation: nil)) == "decode")
        #expect(machine.valueRequested() == Machine.RequestAction(flight: 2, isNew: true))
        #expect(word(machine.responseReceived(2, representation: nil)) == "decode")
        #expect(machine.decoded(1, "a", cost: 1).flights == [1])
        #expect(machine.kept.count == 0)
    }

    @Test("A waiter that leaves does not affect the others, and the last one cancels the request")
    func waiterCancelled() {
        var machine = machine()
        _ = machine.valueRequested()
        _ = machine.valueRequested()
        #expect(machine.waiterCancelled(1) == Machine.CancellationAction())
        #expect(machine.waiterCancelled(1) == Machine.CancellationAction(isGone: true, cancelled: 1))
        #expect(machine.isIdle)
        // A cancelled request may still complete or fail.
        #expect(word(machine.responseReceived(1, representation: 7)) == "abandoned")
        #expect(machine.failed(1).isEmpty)
        #expect(machine.waiterCancelled(1) == Machine.CancellationAction())
        #expect(machine.valueRequested() == Machine.RequestAction(flight: 2, isNew: true))
    }

    @Test("A decoding continues for those who joined after its first requests have left")
    func leftDecoding() {
        var machine = machine()
        _ = machine.valueRequested()
        _ = machine.responseReceived(1, representation: 7)
        _ = machine.valueRequested()
        _ = machine.responseReceived(2, representation: 7)
        #expect(machine.waiterCancelled(1) == Machine.CancellationAction(isGone: true))
        _ = machine.valueRequested()
        #expect(word(machine.responseReceived(3, representation: 7)) == "joined")
        #expect(machine.waiterCancelled(3) == Machine.CancellationAction(isGone: true))
        // The cancelled number is that of the flight that runs the decoding.
        #expect(machine.waiterCancelled(2) == Machine.CancellationAction(isGone: true, cancelled: 1))
        #expect(machine.decoded(1, "a", cost: 1).flights.isEmpty)
        #expect(machine.kept.count == 0 && machine.isIdle)
    }

    @Test("A failure is returned for all waiting flights, and nothing is cached")
    func failed() {
        var machine = machine()
        _ = machine.valueRequested()
        #expect(machine.failed(1) == [1])
        _ = machine.valueRequested()
        _ = machine.responseReceived(2, representation: 7)
        _ = machine.valueRequested()
        _ = machine.responseReceived(3, representation: 7)
        #expect(machine.failed(2) == [2, 3])
        _ = machine.valueRequested()
        #expect(word(machine.responseReceived(4, representation: 7)) == "decode")
        #expect(machine.failed(4) == [4])
        #expect(machine.isIdle && machine.kept.count == 0)
    }

    @Test("A body that ends during its decoding is delivered, not cached and not joined")
    func endedWhileDecoding() {
        var machine = machine()
        _ = machine.valueRequested()
        _ = machine.responseReceived(1, representation: 7)
        #expect(machine.ended(7).isEmpty)
        _ = machine.valueRequested()
        #expect(word(machine.responseReceived(2, representation: 7)) == "decode")
        #expect(machine.decoded(1, "a", cost: 1).flights == [1])
        #expect(machine.kept.count == 0)
        // The body was received again after its end, so its value is cached.
        _ = machine.decoded(2, "b", cost: 1)
        #expect(machine.kept.count == 1)
    }

    @Test("A body that ends before its response arrives is delivered and not cached")
    func endedWhileFetching() {
        var machine = machine()
        _ = machine.valueRequested()
        _ = machine.ended(7)
        #expect(word(machine.responseReceived(1, representation: 7)) == "decode")
        #expect(machine.decoded(1, "a", cost: 1).flights == [1])
        #expect(machine.kept.count == 0)
    }

    @Test("The record of ends during a long request has a fixed size")
    func manyEndings() {
        var endings = RecentKeys<UInt64, UInt64>()
        for number in 0..<5_000 { endings.update(3, for: UInt64(number)) }
        #expect(endings[4_999] == 3)
        #expect(endings[UInt64(5_000 - RecentKeys<UInt64, UInt64>.defaultLimit)] == 3)
        #expect(endings[UInt64(4_999 - RecentKeys<UInt64, UInt64>.defaultLimit)] == nil)
        endings.update(4, for: 4_999)
        #expect(endings[4_999] == 4)
        var machine = machine()
        for last in [1, 2] as [UInt64] {
            _ = machine.valueRequested(.sample, sharing: nil)
            _ = machine.ended(last)
        }
        #expect(word(machine.responseReceived(2, representation: 1)) == "decode")
        #expect(machine.decoded(2, "a", cost: 1).flights == [2] && machine.kept.count == 1)
        #expect(word(machine.responseReceived(1, representation: 2)) == "decode")
        #expect(machine.decoded(1, "b", cost: 1).flights == [1] && machine.kept.count == 1)
    }

    @Test("A resource that is removed during its decoding is delivered and not cached")
    func removed() {
        var machine = machine()
        _ = machine.valueRequested()
        _ = machine.responseReceived(1, representation: 7)
        _ = machine.removed { $0 == resource }
        #expect(machine.decoded(1, "a", cost: 1).flights == [1])
        #expect(machine.kept.count == 0)
        _ = machine.valueRequested()
        _ = machine.responseReceived(2, representation: 7)
        _ = machine.decoded(2, "b", cost: 1)
        #expect(machine.removed { _ in false }.isEmpty)
        #expect(machine.removed { _ in true } == ["b"])
    }

    @Test("Requests with different fields, options or credentials share nothing")
    func sharingKeys() {
        let key = sharing
        func other(_ change: (inout RequestOptions) -> Void) -> DecodedSharingKey? {
            var options = RequestOptions()
            change(&options)
            let resource = DecodedResource(resource.request, options: options)
            return DecodedSharingKey(resource, options: options)
        }
        #expect(other { _ in } == key && key != nil)
        let alice = other {
            $0.authentication = AuthenticationSettings(credentials: .basic(user: "alice", password: "x"))
        }
        let bob = other {
            $0.authentication = AuthenticationSettings(credentials: .basic(user: "bob", password: "x"))
        }
        let group = BandwidthGroup(HTTPSession.own(), limit: .none)
        let different = [
            other { $0.priority = .high }, other { $0.queueOrder = .lastComeFirstServed },
            other { $0.returnsRawBody = true }, other { $0.ignoresContentLength = true },
            other { $0.decompresses = false }, other { $0.bodyLimit = 1 }, other { $0.usesCookies = false },
            other { $0.timeouts.total = .seconds(1) }, other { $0.serviceClass = .voice },
            other { $0.meteredNetworks = .denied }, other { $0.omittedFields = [.accept] },
            other { $0.redirects = .doNotFollow }, other { $0.retry = .never },
            other { $0.version = .http10 },
            other { $0.authentication = AuthenticationSettings() }, alice, bob, key,
            other { $0.cacheMode = .onlyIfCached }, other { $0.cachePartition = "a" },
            other { $0.bandwidth = BandwidthLimit(download: .bytesPerSecond(1)) },
            other { $0.bandwidthGroup = group },
        ]
        #expect(Set(different).count == different.count && !different.contains(nil))
        #expect(other { $0.validator = .anything } == nil)
        #expect(other { $0.onInterimResponse = { _ in } } == nil)
        #expect(other { $0.proxy = ProxySettings.none } == nil)
        #expect(other { $0.authentication = AuthenticationSettings(handler: { _ in nil }) } == nil)
        var request = resource.request
        request.headerFields[.authorization] = "Bearer t"
        let plain = RequestOptions()
        #expect(DecodedSharingKey(DecodedResource(request, options: plain), options: plain) != key)
        request.method = .post
        #expect(DecodedSharingKey(DecodedResource(request, options: plain), options: plain) == nil)
    }
}
