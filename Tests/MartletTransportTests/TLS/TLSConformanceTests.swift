import MartletTestSupport
import Testing

@testable import MartletTransport

/// Chains from published collections of hard cases for certificate verifiers.
@Suite("Certificate conformance")
struct TLSConformanceTests {
    private typealias Template = CertificateTemplate

    private let root: CertificateAuthority

    init() throws {
        root = try CertificateAuthority()
    }

    private func fault(
        _ issued: IssuedCertificate, name: String = "localhost", trust: TrustPolicy? = nil,
        suffixes: PublicSuffixRule = .singleLabel
    ) async throws -> TLSError.Kind? {
        var settings = TLSServerSettings(identity: issued.identity)
        settings.allowsWeakKeys = true
        let client = try Certificates.client {
            $0.trust = trust ?? root.trust
            $0.publicSuffixes = suffixes
        }
        return await (try TLSPair()).handshake(
            client: client, server: try TLSContext(server: settings), name: name
        ).clientError?.kind
    }

    private func leaf(_ change: (inout CertificateTemplate) -> Void) throws -> IssuedCertificate {
        var template = CertificateTemplate.loopback
        change(&template)
        return try root.issue(template)
    }

    /// Returns whether a chain is rejected as a bad certificate with a reason that contains the words.
    private func isBad(_ kind: TLSError.Kind?, _ words: String) -> Bool {
        if case .badCertificate(let reason, _) = kind { reason.contains(words) } else { false }
    }

    @Test(
        "Names and addresses must satisfy the constraints of each authority above",
        arguments: [
            (["excluded;DNS:localhost"], "localhost", false),
            (["excluded;DNS:example.com"], "localhost", true),
            (
                [
                    "permitted;DNS:localhost", "permitted;IP:127.0.0.0/255.0.0.0",
                    "permitted;IP:0:0:0:0:0:0:0:1/FFFF:FFFF:FFFF:FFFF:FFFF:FFFF:FFFF:FFFF",
                ], "localhost", true
            ),
            (["permitted;IP:10.0.0.0/255.0.0.0"], "127.0.0.1", false),
            (["excluded;IP:127.0.0.0/255.0.0.0"], "localhost", false),
            (["excluded;IP:10.0.0.0/255.0.0.0"], "127.0.0.1", true),
            (["permitted;DNS:localhost", "excluded;DNS:localhost"], "localhost", false),
        ])
    func nameConstraints(constraints: [String], name: String, isGood: Bool) async throws {
        let below = try root.intermediate { $0.nameConstraints = constraints }
        let kind = try await fault(try below.issue(.loopback), name: name)
        #expect((kind == nil) == isGood, "\(String(describing: kind))")
        if !isGood, case .badCertificate(_, let code) = kind { #expect([47, 48].contains(code)) }
    }

    @Test("Name constraints that are empty, have a wildcard or an incomplete mask are rejected")
    func malformedConstraints() async throws {
        let kind = "2.5.29.30"
        let dns: [UInt8] = [0x30, 0x0B, 0xA1, 0x09, 0x30, 0x07, 0x82, 0x05] + Array("*.a.b".utf8)
        let mask: [UInt8] = [0x30, 0x0E, 0xA1, 0x0C, 0x30, 0x0A, 0x87, 0x08, 10, 0, 0, 0, 255, 0, 255, 0]
        let short: [UInt8] = [0x30, 0x0A, 0xA1, 0x08, 0x30, 0x06, 0x87, 0x04, 10, 0, 0, 0]
        for value in [[0x30, 0], dns, mask, short] {
            let below = try root.intermediate {
                $0.extensions = [.init(kind, isCritical: true, value: value)]
            }
            let fault = try await fault(try below.issue(.loopback))
            guard case .badCertificate = fault else {
                Issue.record("\(String(describing: fault)) for \(value)")
                continue
            }
        }
    }

    @Test("A leaf with name constraints is rejected")
    func constraintsInLeaf() async throws {
        let kind = try await fault(try leaf { $0.permittedDomains = ["localhost"] })
        #expect(isBad(kind, "name constraints"))
    }

    @Test("An authority whose extended key usage excludes servers cannot sign for a server")
    func authorityUsage() async throws {
        let below = try root.intermediate { $0.usages = [.client] }
        guard case .wrongPurpose = try await fault(try below.issue(.loopback)) else {
            Issue.record("not refused")
            return
        }
        let fitting = try root.intermediate { $0.usages = [.client, .server] }
        #expect(try await fault(try fitting.issue(.loopback)) == nil)
    }

    @Test("A leaf or an authority with a duplicate extension is rejected")
    func duplicates() async throws {
        let twice = CertificateTemplate.Extension("1.2.3.4.5", value: [5, 0])
        #expect(isBad(try await fault(try leaf { $0.extensions = [twice, twice] }), "twice"))
        let below = try root.intermediate { $0.extensions = [twice, twice] }
        #expect(isBad(try await fault(try below.issue(.loopback)), "twice"))
        #expect(try await fault(try leaf { $0.extensions = [twice] }) == nil)
        let names = CertificateTemplate.Extension(
            "2.5.29.17", value: [0x30, 0x0B, 0x82, 0x09] + Array("localhost".utf8))
        #expect(try await fault(try leaf { $0.extensions = [names] }) != nil)
    }

    @Test("An unknown critical extension is rejected, and a noncritical one is ignored")
    func unknownExtensions() async throws {
        let value: [UInt8] = [5, 0]
        #expect(
            isBad(
                try await fault(
                    try leaf { $0.extensions = [.init("1.2.3.4.5", isCritical: true, value: value)] }),
                "critical"))
        #expect(try await fault(try leaf { $0.extensions = [.init("1.2.3.4.5", value: value)] }) == nil)
    }

    @Test(
        "A serial number that is zero or too long is rejected",
        arguments: [([0], false), ([UInt8](repeating: 0x7F, count: 21), false), ([1], true)])
    func serialNumbers(number: [UInt8], isGood: Bool) async throws {
        let kind = try await fault(try leaf { $0.serialNumber = number })
        #expect(isGood ? kind == nil : isBad(kind, "serial number"))
    }

    @Test("Critical alternative names in a certificate with a subject are rejected")
    func criticalNames() async throws {
        #expect(isBad(try await fault(try leaf { $0.hasCriticalNames = true }), "critical"))
    }

    @Test("Authority information that is malformed or critical is rejected")
    func authorityInformation() async throws {
        let kind = "1.3.6.1.5.5.7.1.1"
        let good: [UInt8] =
            [0x30, 0x13, 0x30, 0x11, 0x06, 0x08, 0x2B, 6, 1, 5, 5, 7, 0x30, 2, 0x86, 0x05]
            + Array("a://b".utf8)
        #expect(
            isBad(try await fault(try leaf { $0.extensions = [.init(kind, value: [1, 2])] }), "malformed"))
        #expect(
            isBad(
                try await fault(try leaf { $0.extensions = [.init(kind, isCritical: true, value: good)] }),
                "critical"))
        #expect(try await fault(try leaf { $0.extensions = [.init(kind, value: good)] }) == nil)
    }

    @Test("A version 1 certificate has no names and cannot sign")
    func versionOne() async throws {
        #expect(try await fault(try leaf { $0.version = 0 }) != nil)
        let below = try root.intermediate { $0.version = 0 }
        #expect(try await fault(try below.issue(.loopback)) != nil)
    }

    @Test("An RSA key whose size is not a whole number of bytes is rejected")
    func oddKeys() async throws {
        let kind = try await fault(try leaf { $0.key = .rsa(2050) })
        guard case .weakKey = kind else {
            Issue.record("\(String(describing: kind))")
            return
        }
    }

    @Test("A DSA key anywhere in a chain is rejected")
    func dsa() throws {
        let pem = """
            -----BEGIN CERTIFICATE-----
            MIIEWDCCBAagAwIBAgIUGazwg46IXtG3sDq8k86ru4EEqpswCwYJYIZIAWUDBAMC
            MA4xDDAKBgNVBAMMA2RzYTAgFw0yNjExMjExNjU3MzVaGA8yMTI2MTAyODE2NTcz
            NVowDjEMMAoGA1UEAwwDZHNhMIIDQzCCAjYGByqGSM44BAEwggIpAoIBAQDujw0J
            IwFaBpX/AuX8IblYiwwJxEO37goNLa4cwNu/H0zRKRt5xw+Fmr4eXwH6pszfxryG
            2jYsn2W9odtk8S9BHMNEShpcxcs7vk2qYWIEcniivlYlxgVTs4qbXmvuJ/BLcwBD
            izJqHp98IlsNIN/FlGSNRtIvqvuoANuvUwoT6cMh2YTYZ9zW7n4hrD5/j/7P6r41
            oR/9oaMOjwsR8qAxBVboHyNaBBgrAGxqFg2AP6LFtsWu0MX+SX1BO62xqpznZQy/
            PLjnKQxH+bQuVwvLLYCxuGO9doaZO4L71dqIHySKtldgs6FPwTTgZRDX4DYqH7+g
            i63PtyiciCfj04c7Ah0AwUHmajjvmF4E0vn1RZi7GHN4cyoAY5g5SpJc+wKCAQEA
            q5X2NxjTwoCUCrd1NIo4rxwsM+QpkPifCGyH1laAShbk49FiTfhHQ5vj1xBmV+9j
            Ku0tZS1o9q7yU0sPZGM/BSZJ2ZaMqzkpSz8vfKTP9BpFvii9rbdZpOXWodkxg4he
            ZDGGT1jzSnAP0+iAM9WbCFIvloA6k2EKQeS/J3dRY6NAY0QEEsQUq7bNN19pMvWK
            ZOElubxTnemufKv6h0eDBrKgdhHerlvRJ/PEXc3X6pMzrBtocxjChS5U0K5v9tuI
            BIfRvs8P+iPkr8vMcy9rzIvuhlYbTFtNiibc3+NQMlKiCbh256M1AYSzjME96qU9
            n1nvbbTIz/rLv1byNMRzpgOCAQUAAoIBABQkN/QCDlner+sksd7bKEQ3tdjab9EA
            nWWOf61c0pY1mvTmg8VQG1qGQfkILdiy+wFLBjdo/kTJLKHzW2r4Xyt5QhpimNma
            kv8mqvSnLmRV+f0kkmB717BF1k5PidmdmY3BT3qSAgDNJf6ekYYxqSkLmMJ6UBpW
            g0pEoO0tDr4BxEB5LSu6KvGvFrV/NWuOwyiPhHm2vnQmfqJuPVNQuB3ETqtVLpqh
            Fp/pM5ns1qr/B1qC9EehOs56bx27x8jiJ+s+i1yE4WL+e5lO9Q/pxXv7QzyoffjW
            +PM+d8fBGJpcJsV4Rv4mNcY1FJkf5FwcVkx0tEGGrajsM93qQrcjuR+jUzBRMB0G
            A1UdDgQWBBQXeOU1W2SsV1UKFY6Q+twohwVV/DAfBgNVHSMEGDAWgBQXeOU1W2Ss
            V1UKFY6Q+twohwVV/DAPBgNVHRMBAf8EBTADAQH/MAsGCWCGSAFlAwQDAgM/ADA8
            Ahwc4snOq04aZST72j18acLvM+Kc+IfjgXFwB30EAhwY8HqzUJyIlXFBQACUtnwi
            nv1YoXkb6g98uBse
            -----END CERTIFICATE-----
            """
        let certificate = try #require(PEMParser.certificates(in: Array(pem.utf8))?.first)
        guard case .weakKey = unsafe ChainRule.verificationError(of: [certificate.pointer]) else {
            Issue.record("not refused")
            return
        }
    }

    @Test("A trusted intermediate authority needs no root")
    func trustedIntermediate() async throws {
        let below = try root.intermediate()
        let issued = try below.issue(.loopback)
        #expect(try await fault(issued, trust: .only(.text(below.certificatePEM))) == nil)
        let other = try root.intermediate()
        #expect(try await fault(issued, trust: .only(.text(other.certificatePEM))) != nil)
    }

    @Test(
        "A wildcard directly below a public suffix matches nothing, but a full name matches",
        arguments: [
            (["*.co.uk"], "example.co.uk", false), (["*.example.co.uk"], "www.example.co.uk", true),
            (["*.co.uk", "example.co.uk"], "example.co.uk", true), (["*.CO.UK"], "example.co.uk", false),
            (["*.uk"], "co.uk", false), (["*.com", "example.com"], "example.com", true),
        ])
    func publicSuffixes(names: [String], host: String, fits: Bool) async throws {
        let suffixes = PublicSuffixRule { $0 == "co.uk" }
        let issued = try root.issue(Template(hostNames: names))
        let kind = try await fault(issued, name: host, suffixes: suffixes)
        #expect(kind == (fits ? nil : .nameMismatch(names)))
    }

    // OpenSSL compares a wildcard with the constraints as if it were a name.
    @Test(
        "A wildcard that covers an excluded host is rejected for any requested name",
        arguments: [
            (["excluded;DNS:bad.example.com"], ["*.example.com"], "good.example.com", false),
            (["excluded;DNS:BAD.Example.COM"], ["*.example.com"], "good.example.com", false),
            (
                ["excluded;DNS:x.test", "excluded;DNS:bad.example.com"], ["*.EXAMPLE.com"], "a.example.com",
                false
            ),
            (["excluded;DNS:bad.example.com"], ["*.example.com", "host.test"], "host.test", false),
            (["excluded;DNS:bad.example.com"], ["good.example.com"], "good.example.com", true),
            (["excluded;DNS:bad.example.com"], ["*.example.org"], "a.example.org", true),
            // A wildcard matches one label.
            (["excluded;DNS:a.bad.example.com"], ["*.example.com"], "good.example.com", true),
            (["excluded;DNS:bad.example.com"], ["*.good.example.com"], "a.good.example.com", true),
            (["excluded;DNS:badexample.com"], ["*.example.com"], "a.example.com", true),
            (["excluded;DNS:example.com"], ["*.example.com"], "a.example.com", false),
            (["permitted;DNS:example.com"], ["*.example.com"], "a.example.com", true),
        ])
    func excludedWildcards(constraints: [String], names: [String], host: String, isGood: Bool) async throws {
        let far = try root.intermediate { $0.nameConstraints = constraints }
        for below in [far, try far.intermediate()] {
            let kind = try await fault(try below.issue(Template(hostNames: names)), name: host)
            guard !isGood else {
                #expect(kind == nil)
                continue
            }
            guard case .badCertificate(_, code: 48) = kind else {
                Issue.record("\(String(describing: kind))")
                continue
            }
        }
    }

    @Test(
        "A wildcard directly below a public suffix matches nothing if the suffix list is installed",
        .enabled(if: !RegistrySuffixes.installed.isEmpty),
        arguments: [
            ("*.co.uk", "example.co.uk", false), ("*.com.au", "example.com.au", false),
            ("*.example.co.uk", "www.example.co.uk", true), ("*.example.com", "www.example.com", true),
            // The rule `*.ck` and its exception.
            ("*.co.ck", "example.co.ck", false), ("*.www.ck", "a.www.ck", true),
            // The list contains this suffix in Chinese.
            ("*.xn--55qx5d.cn", "example.xn--55qx5d.cn", false),
            // A private domain, whose owner is responsible for all of it.
            ("*.github.io", "example.github.io", true),
        ])
    func registrySuffixes(name: String, host: String, fits: Bool) async throws {
        #expect(TLSSettings().publicSuffixes == .system)
        let issued = try root.issue(Template(hostNames: [name]))
        let kind = try await fault(issued, name: host, suffixes: .system)
        #expect(kind == (fits ? nil : .nameMismatch([name])))
    }

    @Test(
        "Names that are not plain host names match nothing",
        arguments: [
            ("example.com.", "example.com"), ("bücher.example", "xn--bcher-kva.example"),
            ("xn--*.example.com", "xn--a.example.com"), ("*a.example.com", "aa.example.com"),
            (".example.com", "a.example.com"), ("", "localhost"), ("*", "localhost"), ("*.", "localhost"),
            ("*..com", "a.com"), ("exa mple.com", "example.com"), ("*.example.com\0.b", "a.example.com"),
        ])
    func oddNames(name: String, host: String) async throws {
        let kind = try await fault(try root.issue(Template(hostNames: [name])), name: host)
        guard case .nameMismatch = kind else {
            Issue.record("\(String(describing: kind))")
            return
        }
    }
}
