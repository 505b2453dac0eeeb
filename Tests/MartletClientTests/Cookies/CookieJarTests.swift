import MartletURL
import FoundationEssentials
import MartletCaching
import MartletCookies
import MartletCore
import MartletHosts
import SystemPackage
import Testing

@Suite("Cookie jar", .timeLimit(.minutes(20)))
struct CookieJarTests {
    private static let site = "https://www.site.org/"

    private func jar(
        file: FilePath? = nil, keepsSessionCookies: Bool = false, policy: CookiePolicy = .always,
        trustsLoopback: Bool = false
    ) -> CookieJar {
        CookieJar(
            file: file, keepsSessionCookies: keepsSessionCookies, policy: policy,
            publicSuffixes: CookieScene.suffixes,
            trustsLoopback: trustsLoopback, now: { CookieScene.start })
    }

    private func file(in directory: TemporaryDirectory) -> FilePath { FilePath("\(directory.path)/cookies") }

    @Test("Cookies of a response are sent with the next request")
    func storesAndSends() async throws {
        let jar = jar()
        let url = try HTTPURL(CookieJarTests.site)
        #expect(jar.isEmpty)
        #expect(await jar.header(for: url) == nil)
        let rejections = await jar.store(setCookieValues: ["a=1", "b=2; Domain=org"], from: url)
        #expect(rejections.map(\.reason) == [.publicSuffix])
        #expect(!jar.isEmpty)
        #expect(await jar.header(for: url) == "a=1")
        #expect(await jar.cookies(for: url).map(\.name) == ["a"])
        #expect(try await jar.cookies(for: HTTPURL("https://other.org/")) == [])
        await jar.store(setCookieValues: ["a=; Max-Age=0"], from: url)
        #expect(jar.isEmpty)
    }

    @Test("Each field value sets one cookie, and its bytes are kept unchanged")
    func bytes() async throws {
        let jar = jar()
        let url = try HTTPURL(CookieJarTests.site)
        #expect(
            await jar.store(setCookieBytes: [Array("a=1, b=2".utf8), [0x64, 0x3D, 0xFF]], from: url) == [])
        #expect(await jar.headerBytes(for: url) == Array("a=1, b=2; d=".utf8) + [0xFF])
        #expect(await jar.store(setCookieBytes: [], from: url) == [])
    }

    @Test("The policy determines which cookies are sent and stored")
    func policy() async throws {
        let url = try HTTPURL(CookieJarTests.site)
        let never = jar(policy: .never)
        #expect(await never.store(setCookieValues: ["a=1"], from: url) == [])
        #expect(never.isEmpty)
        let sendOnly = jar(policy: .sendOnly)
        await sendOnly.set(try Cookie(name: "mine", value: "1", domain: "www.site.org"))
        await sendOnly.store(setCookieValues: ["a=1"], from: url)
        #expect(await sendOnly.header(for: url) == "mine=1")
        let mute = jar(policy: CookiePolicy(sendsCookies: false, storesCookies: true))
        await mute.store(setCookieValues: ["a=1"], from: url)
        #expect(await mute.header(for: url) == nil)
        #expect(await mute.cookies(for: url) == [])
        #expect(await mute.allCookies.count == 1)
    }

    @Test("With trustsLoopback, secure cookies are accepted and sent over HTTP to loopback hosts")
    func loopback() async throws {
        let jar = jar(trustsLoopback: true)
        for host in ["localhost", "x.localhost", "127.0.0.1", "127.9.9.9", "[::1]"] {
            let url = try HTTPURL("http://\(host)/")
            #expect(await jar.store(setCookieValues: ["a=1; Secure"], from: url) == [])
            #expect(await jar.header(for: url) == "a=1")
        }
        let other = try HTTPURL("http://128.0.0.1/")
        #expect(
            await jar.store(setCookieValues: ["a=1; Secure"], from: other).map(\.reason) == [.insecureOrigin])
    }

    @Test("Cookies can be removed one by one, by domain, by session and all together")
    func removes() async throws {
        let jar = jar()
        let url = try HTTPURL(CookieJarTests.site)
        let all = ["a=1", "b=2; Max-Age=100", "c=3; Domain=site.org"]
        await jar.store(setCookieValues: all, from: url)
        await jar.store(setCookieValues: ["d=4"], from: try HTTPURL("https://other.org/"))
        let first = try #require(await jar.cookies(for: url).first { $0.name == "a" })
        await jar.remove(first)
        #expect(await jar.header(for: url) == "b=2; c=3")
        #expect(await jar.removeSessionCookies() == 2)
        #expect(await jar.header(for: url) == "b=2")
        #expect(await jar.removeCookies(domain: ".Site.org") == 1)
        #expect(await jar.removeCookies(domain: "not a host") == 0)
        await jar.store(setCookieValues: all, from: url)
        await jar.removeAll()
        #expect(jar.isEmpty)
        #expect(await jar.allCookies == [])
    }

    @Test("Persistent cookies are saved in a file that only its owner can read")
    func persists() async throws {
        let directory = try TemporaryDirectory()
        let path = file(in: directory)
        let url = try HTTPURL(CookieJarTests.site)
        let first = jar(file: path)
        #expect(!first.isEmpty)
        #expect(await first.header(for: url) == nil)
        #expect(first.isEmpty)
        try await first.save()
        #expect(try directory.contents() == [])
        await first.store(
            setCookieValues: [
                "a=1; Max-Age=100; Secure; HttpOnly; SameSite=Lax; Path=/", "b=2", "=%09\t%; Max-Age=9",
            ],
            from: url)
        #expect(await first.hasUnsavedChanges)
        try await first.save()
        #expect(await !first.hasUnsavedChanges)
        #expect(try directory.contents() == ["cookies"])
        let attributes = try FileManager.default.attributesOfItem(atPath: path.string)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        let second = jar(file: path)
        #expect(await second.header(for: url) == "a=1; %09\t%")
        let before = await first.allCookies.filter { !$0.isSessionCookie }
        #expect(await second.allCookies == before)
        #expect(await !second.hasUnsavedChanges)
    }

    @Test("With keepsSessionCookies, session cookies are saved as well")
    func keepsSession() async throws {
        let directory = try TemporaryDirectory()
        let url = try HTTPURL(CookieJarTests.site)
        let first = jar(file: file(in: directory), keepsSessionCookies: true)
        await first.store(setCookieValues: ["a=1"], from: url)
        try await first.save()
        #expect(await jar(file: file(in: directory)).header(for: url) == "a=1")
    }

    @Test("Removed cookies are no longer in the file after a save")
    func savesRemoval() async throws {
        let directory = try TemporaryDirectory()
        let url = try HTTPURL(CookieJarTests.site)
        let first = jar(file: file(in: directory))
        await first.store(setCookieValues: ["a=1; Max-Age=9", "b=2; Max-Age=9"], from: url)
        try await first.save()
        await first.store(setCookieValues: ["a=; Max-Age=0"], from: url)
        try await first.save()
        #expect(await jar(file: file(in: directory)).header(for: url) == "b=2")
        await first.removeAll()
        try await first.save()
        #expect(await jar(file: file(in: directory)).allCookies == [])
    }

    @Test("A file that is truncated at any byte loses at most the cookie of its last line")
    func truncated() async throws {
        let cookies = try (0..<3).map { number in
            try Cookie(
                name: "n\(number)", value: "value \(number)", domain: "site.org",
                expires: Date(timeIntervalSince1970: 2_000_000_000),
                created: CookieScene.start)
        }
        let text = CookieFile.text(of: cookies)
        for length in 0...text.count {
            let content = CookieFile.content(Array(text[..<length]))
            let ends = text[..<length].count { $0 == 0x0A }
            // The first line is a header. A last line without a line feed counts if it is complete.
            #expect(content.cookies.count == max(0, ends - 1) || content.cookies.count == ends)
            #expect(content.cookies == Array(cookies[..<content.cookies.count]), "\(length)")
            #expect(content.malformedLines.count <= 1)
        }
        #expect(CookieFile.content(text).cookies == cookies)
    }

    @Test("A flipped byte loses only the cookies of its line and never makes a different cookie")
    func flipped() async throws {
        let cookies = try (0..<3).map { number in
            try Cookie(
                name: "n\(number)", value: "v", domain: "site.org",
                expires: Date(timeIntervalSince1970: 2_000_000_000),
                created: CookieScene.start)
        }
        let text = CookieFile.text(of: cookies)
        let title = try #require(text.firstIndex(of: 0x0A))
        for place in text.indices {
            for mask: UInt8 in [1, 0x20, 0x80, 0xFF] {
                var changed = text
                changed[place] ^= mask
                let found = CookieFile.content(changed).cookies
                #expect(found.allSatisfy { cookies.contains($0) }, "byte \(place)")
                // Flipping a line feed joins two lines.
                #expect(found.count >= (place <= title ? 2 : 1), "byte \(place)")
            }
        }
    }

    @Test("Damaged lines are reported by number, and the other lines are loaded")
    func damaged() async throws {
        let directory = try TemporaryDirectory()
        let path = file(in: directory)
        let cookie = try Cookie(
            name: "a", value: "1", domain: "site.org", expires: CookieScene.start.addingTimeInterval(50),
            created: CookieScene.start)
        var text = Array("garbage\n\u{0}\n2\tfuture\tversion\n".utf8)
        text += CookieFile.text(of: [cookie])
        text += [0xFF, 0x0A]
        try Data(text).write(to: URL(fileURLWithPath: path.string))
        let jar = jar(file: path)
        let report = try await jar.load()
        #expect(report.stored == 1)
        #expect(report.malformedLines == [1, 2, 3, 6])
        #expect(await jar.allCookies == [cookie])
        #expect(try await jar.load().stored == 0)
    }

    @Test("An unreadable file is an error of load and save, and save does not replace it")
    func unreadable() async throws {
        let directory = try TemporaryDirectory()
        // A directory of that name: not even root can read it as a file.
        try FileManager.default.createDirectory(
            atPath: "\(directory.path)/cookies", withIntermediateDirectories: false)
        let jar = jar(file: file(in: directory))
        let url = try HTTPURL(CookieJarTests.site)
        #expect(await jar.header(for: url) == nil)
        await jar.store(setCookieValues: ["a=1; Max-Age=9"], from: url)
        #expect(await jar.header(for: url) == "a=1")
        await #expect(throws: StorageError.self) { try await jar.load() }
        await #expect(throws: StorageError.self) { try await jar.save() }
        #expect(try directory.contents() == ["cookies"])
        // Once the file is readable, a save merges its cookies with those in memory.
        try FileManager.default.removeItem(atPath: "\(directory.path)/cookies")
        let old = try Cookie(
            name: "old", value: "1", domain: "www.site.org",
            expires: CookieScene.start.addingTimeInterval(50),
            created: CookieScene.start.addingTimeInterval(-50))
        try Data(CookieFile.text(of: [old])).write(to: URL(fileURLWithPath: "\(directory.path)/cookies"))
        try await jar.save()
        #expect(await self.jar(file: file(in: directory)).header(for: url) == "old=1; a=1")
    }

    // An earlier version tried to read it only once. After a transient failure the jar had no cookies until a save,
    // which also brought back the cookies that had been removed before.
    @Test(
        "A file that could not be read is read by the next use, also to remove its cookies", arguments: [false, true])
    func readLater(isRemoval: Bool) async throws {
        let directory = try TemporaryDirectory()
        let path = file(in: directory)
        let url = try HTTPURL(CookieJarTests.site)
        try FileManager.default.createDirectory(atPath: path.string, withIntermediateDirectories: false)
        let early = jar(file: path)
        #expect(await early.header(for: url) == nil)
        #expect(!early.isEmpty && !early.isReady)
        try FileManager.default.removeItem(atPath: path.string)
        let writer = jar(file: path)
        await writer.store(setCookieValues: ["a=1; Max-Age=9"], from: url)
        try await writer.save()
        if isRemoval { await early.removeAll() }
        let expected = isRemoval ? nil : "a=1"
        #expect(await early.header(for: url) == expected)
        try await early.save()
        #expect(await jar(file: path).header(for: url) == expected)
    }

    @Test("Saving into a directory that does not exist is an error")
    func noDirectory() async throws {
        let jar = jar(file: "/nowhere/at/all/cookies")
        await jar.store(setCookieValues: ["a=1; Max-Age=9"], from: try HTTPURL(CookieJarTests.site))
        await #expect(throws: StorageError.self) { try await jar.save() }
        #expect(await jar.hasUnsavedChanges)
    }

    @Test("Concurrent callers wait until the file is loaded")
    func concurrentLoading() async throws {
        let directory = try TemporaryDirectory()
        let url = try HTTPURL(CookieJarTests.site)
        let writer = jar(file: file(in: directory))
        await writer.store(setCookieValues: ["a=1; Max-Age=9"], from: url)
        try await writer.save()
        let reader = jar(file: file(in: directory))
        let headers = await withTaskGroup(of: String?.self) { group in
            for number in 0..<20 {
                group.addTask {
                    if number % 4 == 3 {
                        await reader.store(setCookieValues: ["n\(number)=v; Path=/x"], from: url)
                    }
                    return await reader.header(for: url)
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(headers == Array(repeating: "a=1", count: 20))
        #expect(await reader.allCookies.count == 6)
    }

    @Test("After many concurrent saves, the file is complete and contains every cookie")
    func concurrentSaving() async throws {
        let directory = try TemporaryDirectory()
        let url = try HTTPURL(CookieJarTests.site)
        let jar = jar(file: file(in: directory))
        await withTaskGroup { group in
            for number in 0..<20 {
                group.addTask {
                    await jar.store(setCookieValues: ["n\(number)=v; Max-Age=9"], from: url)
                    try? await jar.save()
                }
            }
        }
        #expect(await !jar.hasUnsavedChanges)
        let other = self.jar(file: file(in: directory))
        #expect(try await other.load().stored == 20)
        #expect(try directory.contents() == ["cookies"])
    }

    @Test("Netscape cookie files are imported and exported")
    func netscape() async throws {
        let directory = try TemporaryDirectory()
        let path = FilePath("\(directory.path)/cookies.txt")
        let first = jar()
        let report = await first.importNetscape(
            "x.org\tFALSE\t/\tFALSE\t0\ta\t1\nbad\nx.org\tFALSE\t/\tFALSE\t1\told\t1\n.co.uk\tTRUE\t/\tFALSE\t0\twide\t1\n"
                .utf8)
        #expect(report.stored == 2 && report.dropped == 1 && report.malformedLines == [2])
        #expect(try await first.header(for: HTTPURL("http://x.org/")) == "a=1")
        #expect(try await first.header(for: HTTPURL("http://shop.co.uk/")) == nil)
        try await first.exportNetscape(to: path)
        let attributes = try FileManager.default.attributesOfItem(atPath: path.string)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        let second = jar()
        #expect(try await second.importNetscape(contentsOf: path).stored == 2)
        #expect(await second.allCookies == first.allCookies)
        await #expect(throws: StorageError.self) { try await second.importNetscape(contentsOf: "/nowhere") }
    }

    @Test("Descriptions of a jar and its reports contain no cookie values")
    func secrecy() async throws {
        let jar = jar()
        let url = try HTTPURL("http://www.site.org/")
        let rejections = await jar.store(
            setCookieValues: ["a=hunter2", "b=hunter2; Secure", "hunter2;\u{0}"], from: url)
        var text = "\(rejections) \(jar) \(await jar.allCookies)"
        dump(jar, to: &text)
        dump(rejections, to: &text)
        #expect(rejections.count == 2)
        #expect(!text.contains("hunter2"))
    }
}
