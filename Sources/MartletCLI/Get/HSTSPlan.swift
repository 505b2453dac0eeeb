import Glibc
import Martlet

/// The HSTS stores of `--hsts`. As in curl, groups with the same file share one, which is written at the end.
struct HSTSPlan: Sendable {
    private var stores: [String: HSTSStore] = [:]

    /// Reads the files of all groups. An unreadable file is an error, since URLs would be requested over http.
    init(_ groups: [TransferOptions]) throws(UsageError) {
        for name in groups.compactMap(\.hstsFile) where stores[name] == nil {
            do throws(StorageError) { stores[name] = try name.isEmpty ? HSTSStore() : HSTSStore(file: name) } catch {
                throw UsageError("option --hsts: \(error)", status: .readFailed)
            }
        }
    }

    func store(for group: TransferOptions) -> HSTSStore? { group.hstsFile.flatMap { stores[$0] } }

    /// Writes the files. A failure is reported, and does not change the exit code.
    func save(_ global: GlobalOptions) async {
        for (name, store) in stores {
            // A file such as `/dev/null` must not be replaced.
            if let status = FileInput.status(of: name), status.type != S_IFREG { continue }
            do throws(StorageError) { try await store.save() } catch {
                if global.printsErrors { await Console.report("could not save the file of --hsts: \(error)") }
            }
        }
    }
}
