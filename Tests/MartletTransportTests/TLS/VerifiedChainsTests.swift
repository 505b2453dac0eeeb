import MartletTestSupport
import Synchronization
import Testing

@testable import MartletTransport

@Suite("Chains that are not verified again")
struct VerifiedChainsTests {
    /// Two connections of one context to a server, without session tickets.
    private func twice(
        _ client: TLSContext, _ server: TLSContext, names: [String] = ["localhost", "localhost"]
    ) async throws -> [TLSError.Kind?] {
        var kinds: [TLSError.Kind?] = []
        for name in names {
            let outcome = await (try TLSPair()).handshake(client: client, server: server, name: name)
            if case .success(let stream) = outcome.client { #expect(stream.information.tls?.isResumed == false) }
            kinds.append(outcome.clientError?.kind)
        }
        return kinds
    }

    private func client(_ change: (inout TLSSettings) throws -> Void = { _ in }) throws -> TLSContext {
        var settings = TLSSettings(trust: try Certificates.authority.get().trust, usesSessionTickets: false)
        try change(&settings)
        return try TLSContext(client: settings)
    }

    private func server(_ issued: IssuedCertificate) throws -> TLSContext {
        try TLSContext.server(
            certificateChainPEM: issued.certificateChainPEM, privateKeyPEM: issued.privateKeyPEM)
    }

    @Test("The second connection to a server does not verify the chain again", arguments: TLSVersion.allCases)
    func reuses(version: TLSVersion) async throws {
        let client = try client { $0.maximumVersion = version }
        #expect(try await twice(client, try Certificates.server()) == [nil, nil])
        #expect(client.verifiedChains?.reuseCount == 1 && client.verifiedChains?.count == 1)
    }

    /// A setting that rejects a server, and the expected error.
    struct Rejection: CustomTestStringConvertible {
        let name: String
        /// Changes settings that trust the first authority. The second one, below it, has issued the certificate.
        let change:
            @Sendable (inout TLSSettings, CertificateAuthority, CertificateAuthority, IssuedCertificate) throws -> Void
        let isExpected: @Sendable (TLSError.Kind?) -> Bool
        /// Whether the chain itself is valid, so that the second connection does not verify it.
        var isValid = false

        var testDescription: String { name }
    }

    private static let unusedPin = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

    static let rejections: [Rejection] = [
        Rejection(
            name: "other roots", change: { settings, _, _, _ in settings.trust = try CertificateAuthority().trust },
            isExpected: { $0 == .unknownAuthority }),
        Rejection(
            name: "a pin of another key",
            change: { settings, root, _, _ in
                settings.trust = root.trust.dangerouslyPinningWithoutBackup(
                    try PublicKeyPin(VerifiedChainsTests.unusedPin))
            }, isExpected: { if case .pinMismatch(let found) = $0 { found.count == 3 } else { false } }, isValid: true),
        Rejection(
            name: "a pin of another certificate",
            change: { settings, root, _, _ in
                settings.trust = root.trust.pinningCertificates(.text(try CertificateAuthority().rootPEM))
            }, isExpected: { if case .pinMismatch = $0 { true } else { false } }, isValid: true),
        Rejection(
            name: "a pin, and any certificate",
            change: { settings, _, _, _ in
                settings.trust = .dangerouslyAcceptingAnyCertificate.dangerouslyPinningWithoutBackup(
                    try PublicKeyPin(VerifiedChainsTests.unusedPin))
            }, isExpected: { if case .pinMismatch(let found) = $0 { found.count == 1 } else { false } }),
        Rejection(
            name: "a list that revokes it",
            change: { settings, _, below, issued in
                settings.revocation = .lists(
                    .text(try below.revocationList(revoking: [issued.certificateChainPEM])), scope: .leaf)
            }, isExpected: { $0 == .revoked }),
        Rejection(
            name: "a list of another authority",
            change: { settings, _, _, _ in
                settings.revocation = .lists(.text(try CertificateAuthority().revocationList()), scope: .leaf)
            }, isExpected: { if case .revocationUnknown = $0 { true } else { false } }),
        Rejection(
            name: "a list that has expired",
            change: { settings, _, below, _ in
                let list = try below.revocationList(issued: .seconds(-7200), until: .seconds(-3600))
                settings.revocation = .lists(.text(list), scope: .leaf)
            }, isExpected: { if case .revocationUnknown = $0 { true } else { false } }),
        Rejection(
            name: "a closure that denies",
            change: { settings, root, _, _ in
                settings.trust = root.trust.evaluated { _, _ in .deny(reason: "no") }
            }, isExpected: { $0 == .denied(reason: "no") }),
        Rejection(
            name: "a higher security level", change: { settings, _, _, _ in settings.securityLevel = 5 },
            isExpected: { $0 != nil }),
    ]

    @Test(
        "A setting rejects a server on every connection, whatever other contexts have verified",
        arguments: VerifiedChainsTests.rejections)
    func rejects(rejection: Rejection) async throws {
        let root = try CertificateAuthority()
        let below = try root.intermediate()
        let issued = try below.issue(.loopback)
        let server = try server(issued)
        let open = try client { $0.trust = root.trust }
        #expect(try await twice(open, server) == [nil, nil])
        #expect(open.verifiedChains?.reuseCount == 1)
        let strict = try client {
            $0.trust = root.trust
            try rejection.change(&$0, root, below, issued)
        }
        for kind in try await twice(strict, server) {
            #expect(rejection.isExpected(kind), "\(String(describing: kind))")
        }
        #expect(strict.verifiedChains?.reuseCount ?? 0 == (rejection.isValid ? 1 : 0))
    }

    @Test("A custom policy is called on every connection, and a policy without verification stores nothing")
    func custom() async throws {
        let root = try CertificateAuthority()
        let server = try server(try root.issue(.loopback))
        let calls = Atomic(0)
        let custom = try client {
            $0.trust = root.trust.evaluated { chain, _ in
                calls.add(1, ordering: .relaxed)
                return chain.isTrusted ? .accept : .deny(reason: "invalid")
            }
        }
        #expect(try await twice(custom, server) == [nil, nil])
        #expect(calls.load(ordering: .relaxed) == 2)
        #expect(custom.verifiedChains == nil)
        let any = try client { $0.trust = .dangerouslyAcceptingAnyCertificate }
        #expect(any.verifiedChains == nil)
    }

    @Test("A satisfied pin is compared with the stored chain", arguments: [true, false])
    func pins(ofAuthority: Bool) async throws {
        let root = try CertificateAuthority()
        let issued = try root.issue(.loopback)
        let pin = try PublicKeyPin(of: .text(ofAuthority ? root.rootPEM : issued.certificateChainPEM))
        let client = try client {
            $0.trust = try root.trust.pinningPublicKeys(pin.description, backup: VerifiedChainsTests.unusedPin)
        }
        #expect(try await twice(client, try server(issued)) == [nil, nil])
        #expect(client.verifiedChains?.reuseCount == 1)
    }

    @Test("A chain is valid only for the host that it was verified for")
    func otherHost() async throws {
        let client = try client()
        let server = try Certificates.server(CertificateTemplate(hostNames: ["a.example", "b.example"]))
        let kinds = try await twice(
            client, server, names: ["a.example", "c.example", "b.example", "127.0.0.1", "A.example.", "c.example"])
        for (index, kind) in kinds.enumerated() {
            let isOther = [1, 3, 5].contains(index)
            if case .nameMismatch = kind { #expect(isOther) } else { #expect(!isOther && kind == nil) }
        }
        #expect(client.verifiedChains?.reuseCount == 1 && client.verifiedChains?.count == 2)
    }

    @Test("The same certificate without its intermediate is another chain")
    func otherChain() async throws {
        let root = try CertificateAuthority()
        let issued = try root.intermediate().issue(.loopback)
        let client = try client { $0.trust = root.trust }
        #expect(try await twice(client, try server(issued)) == [nil, nil])
        let end = try #require(issued.certificateChainPEM.firstRange(of: "-----END CERTIFICATE-----"))
        let leaf = IssuedCertificate(
            certificateChainPEM: String(issued.certificateChainPEM[..<end.upperBound]) + "\n",
            privateKeyPEM: issued.privateKeyPEM)
        #expect(try await twice(client, try server(leaf)) == [.unknownAuthority, .unknownAuthority])
        #expect(client.verifiedChains?.reuseCount == 1)
    }

    @Test("Chains are stored with lists in memory, and not with lists that may appear in a directory")
    func directories() throws {
        let root = try CertificateAuthority()
        let list = try root.revocationList()
        for (revocation, directories, isStored) in [
            (RevocationPolicy.none, ["/nowhere"], true), (.lists(.text(list)), [], true),
            (.lists(.text(list)), ["/nowhere"], false),
        ] as [(RevocationPolicy, [String], Bool)] {
            var settings = TLSSettings(trust: .system.adding(.text(root.rootPEM)))
            settings.revocation = revocation
            let context = try TLSContext(client: settings) {
                SystemRoots(store: nil, directories: directories, searched: [])
            }
            #expect((context.verifiedChains != nil) == isStored)
        }
    }

    @Test("The times of a revocation list are those with which it was issued")
    func listTimes() throws {
        let list = try CertificateAuthority().revocationList(issued: .seconds(-100), until: .seconds(5000))
        let lists = try PEMParser.revocationLists(of: .text(list))
        let first = try #require(lists.first)
        let times = try #require(first.times)
        #expect(times.count == 2)
        #expect(times[1] - times[0] == 5100)
        #expect(abs(VerifiedChain.Moment.now().calendar - times[0] - 100) < 60)
    }

    @Test("A stored chain ends with the first of its certificates, and with the next change of a list")
    func ends() throws {
        let authority = try CertificateAuthority()
        let issued = try authority.issue(
            CertificateTemplate(commonName: "a", hostNames: ["a.example"], notAfter: .seconds(300)))
        let certificates = try PEMParser.certificates(of: .text(issued.certificateChainPEM + authority.rootPEM))
        let chain = unsafe certificates.map { unsafe $0.pointer }
        let end = try #require(unsafe Certificate.expiry(of: chain[0]))
        let key = try #require(unsafe VerifiedChains.key(host: "a.example", chain: chain))
        let boot = MonotonicTime(nanoseconds: 1 << 40)
        for (listTimes, last) in [([], end), ([end - 50, end - 100], end - 50), ([end + 1], end)] as [([Int], Int)] {
            let chains = VerifiedChains(listTimes: listTimes)
            unsafe chains.insert(
                key, chain: chain, candidates: nil, at: .init(calendar: end - 100, sinceBoot: boot))
            for (time, isFound) in [(end - 101, false), (end - 100, true), (last - 1, true), (last, false)] {
                #expect((chains.find(key, at: .init(calendar: time, sinceBoot: boot)) != nil) == isFound)
            }
        }
        withExtendedLifetime(certificates) {}
    }

    @Test(
        "A verification holds until a change, for ten minutes, and not before it was made",
        arguments: [
            // Changes, time on the calendar and since boot after the verification, result.
            ([Int](), 0, 0, true), ([], 599, 599, true), ([], 600, 0, false), ([], 0, 600, false),
            ([], 599, 600, false), ([], -1, 0, false), ([], 0, -1, false), ([], -1_000_000, 0, false),
            ([-5], 0, 0, true), ([0], 0, 0, true), ([1], 0, 0, true), ([1], 1, 1, false), ([100, 50], 49, 49, true),
            ([100, 50], 50, 50, false), ([700], 599, 599, true), ([700], 650, 10, false),
        ])
    func validity(changes: [Int], calendar: Int, sinceBoot: Int, isValid: Bool) {
        let start = VerifiedChain.Moment(calendar: 1_000_000_000, sinceBoot: MonotonicTime(nanoseconds: 1 << 50))
        let chain = VerifiedChain(verifiedAt: start, changes: changes.map { start.calendar + $0 })
        let now = VerifiedChain.Moment(
            calendar: start.calendar + calendar, sinceBoot: start.sinceBoot.advanced(by: .seconds(sinceBoot)))
        #expect(chain.isValid(at: now) == isValid)
    }

    @Test("Host and certificates are part of the key, and 256 chains are stored")
    func keys() throws {
        let pem = try Certificates.authority.get().rootPEM
        let certificates = try PEMParser.certificates(of: .text(pem + CertificateAuthority().rootPEM))
        let (first, second) = unsafe (certificates[0].pointer, certificates[1].pointer)
        let keys = unsafe [
            VerifiedChains.key(host: "a", chain: [first]), VerifiedChains.key(host: "b", chain: [first]),
            VerifiedChains.key(host: "a", chain: [second]), VerifiedChains.key(host: "a", chain: [first, second]),
            VerifiedChains.key(host: "a", chain: [second, first]), VerifiedChains.key(host: "a", chain: []),
        ]
        #expect(Set(keys.map { $0 ?? [] }).count == 6 && keys.allSatisfy { $0?.count == 32 })
        #expect(unsafe VerifiedChains.key(host: "a", chain: [first]) == keys[0])
        let chains = VerifiedChains(listTimes: [])
        for number in 0..<300 {
            unsafe chains.insert(
                [UInt8(number & 255), UInt8(number >> 8)], chain: [first], candidates: nil, at: .now())
        }
        #expect(chains.count == 256)
        #expect(chains.find([43, 0]) == nil && chains.find([44, 0]) != nil && chains.find([43, 1]) != nil)
        withExtendedLifetime(certificates) {}
    }
}
