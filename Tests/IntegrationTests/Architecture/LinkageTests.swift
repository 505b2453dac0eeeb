import Foundation
import Testing

@Suite("Linkage of the library and its program")
struct LinkageTests {
    /// The build directory of this test bundle and everything that was built with it.
    private let buildDirectory = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        .deletingLastPathComponent()

    /// Foundation without FoundationEssentials.
    private let unwanted = [
        "Foundation", "FoundationNetworking", "FoundationXML", "FoundationInternationalization",
        "_FoundationICU",
    ]

    @Test("The martlet program loads neither Foundation nor FoundationNetworking")
    func program() throws {
        let needed = try ELFImage(contentsOf: buildDirectory.appendingPathComponent("martlet")).neededLibraries
        #expect(needed.contains("libc.so.6"), "the list was read")
        for library in unwanted {
            #expect(!needed.contains("lib\(library).so"))
        }
    }

    @Test(
        "No object of the library makes the linker load Foundation or FoundationNetworking",
        arguments: LayerRule.libraryTargets)
    func objects(_ target: String) throws {
        let directory = buildDirectory.appendingPathComponent("\(target).build")
        let names = try FileManager.default.subpathsOfDirectory(atPath: directory.path).filter {
            $0.hasSuffix(".o")
        }
        #expect(!names.isEmpty)
        for name in names {
            let entries = try ELFImage(contentsOf: directory.appendingPathComponent(name)).autolinkEntries
            for library in unwanted {
                #expect(!entries.contains("-l\(library)"), "\(target)/\(name)")
            }
        }
    }

    /// The libraries that only the targets of one feature link.
    private static let owners = [
        "png16": "MartletImages", "png": "MartletImages", "turbojpeg": "MartletImages",
        "jpeg": "MartletImages",
        "expat": "MartletXML",
    ]

    @Test("The martlet program loads no image codec")
    func programWithoutCodecs() throws {
        let needed = try ELFImage(contentsOf: buildDirectory.appendingPathComponent("martlet")).neededLibraries
        #expect(needed.contains("libc.so.6"), "the list was read")
        // The program parses Metalink documents with expat.
        for (library, owner) in Self.owners where owner != "MartletXML" {
            #expect(!needed.contains { $0.hasPrefix("lib\(library).so") }, "lib\(library)")
        }
    }

    @Test(
        "Only the owning target's objects make the linker load an image codec or an XML parser",
        arguments: LayerRule.libraryTargets)
    func objectsWithoutCodecs(_ target: String) throws {
        let directory = buildDirectory.appendingPathComponent("\(target).build")
        let names = try FileManager.default.subpathsOfDirectory(atPath: directory.path).filter {
            $0.hasSuffix(".o")
        }
        #expect(!names.isEmpty)
        for name in names {
            let entries = try ELFImage(contentsOf: directory.appendingPathComponent(name)).autolinkEntries
            for (library, owner) in Self.owners where owner != target {
                #expect(!entries.contains("-l\(library)"), "\(target)/\(name)")
            }
        }
    }

    @Test("The check detects Foundation in this test bundle, which uses it")
    func checkSeesFoundation() throws {
        let bundle = try ELFImage(
            contentsOf: URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath())
        #expect(bundle.neededLibraries.contains("libFoundation.so"))
        let directory = buildDirectory.appendingPathComponent("IntegrationTests.build")
        let objects = try FileManager.default.subpathsOfDirectory(atPath: directory.path).filter {
            $0.hasSuffix(".o")
        }
        let entries = try objects.flatMap { name in
            try ELFImage(contentsOf: directory.appendingPathComponent(name)).autolinkEntries
        }
        #expect(entries.contains("-lFoundation"))
    }
}
